#!/usr/bin/env bash
# Fails when `graphdump lint` does not say of misused.cu what is wrong with it, or says it of its clean twin. Needs a GPU.
#   check_misused.sh PATH_OF_GRAPHDUMP PATH_OF_PROGRAM
set -u
graphdump=$1 program=$2
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

rules="shared-memory first-launch several-streams host-owner stack-memory"
for way in faulty clean; do
  "$graphdump" run -o "$scratch/$way" -- "$program" "--$way" >/dev/null 2>&1 || fail "the $way program"
  "$graphdump" lint "$scratch/$way" >"$scratch/$way.txt" || fail "the $way program has an error"
  for rule in $rules; do
    found=$(grep -c -E "^(warning|note) $rule: " "$scratch/$way.txt")
    if [ "$way" = faulty ]; then
      [ "$found" = 1 ] || fail "$found findings of $rule in the faulty program"
    else
      [ "$found" = 0 ] || fail "$rule in the clean program"
    fi
  done
done
if [ "$failures" != 0 ]; then
  cat "$scratch"/*.txt
  exit 1
fi
grep -E "^(warning|note) ($(echo "$rules" | tr ' ' '|')): " "$scratch/faulty.txt"
echo "all checks passed"
