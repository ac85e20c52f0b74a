#!/usr/bin/env bash
# Fails when what was recorded of set_params.cu is not what it has set. Needs a GPU.
#   check_set_params.sh PATH_OF_GRAPHDUMP PATH_OF_PROGRAM
set -u
graphdump=$1 program=$2
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

"$graphdump" run -o "$scratch" -- "$program" 2>"$scratch/summary" || fail "the program"
prefix=$(basename "$(ls "$scratch"/*-0.cgrt.json)" -0.cgrt.json)
file() { echo "$scratch/$prefix-$1.cgrt.json"; }
# A change of the first executable, and the one that was made with what it has set.
for change in 1 2 3; do
  "$graphdump" diff "$(file "0-set$change")" "$(file $change)" || fail "change $change"
  "$graphdump" diff "$(file "0-set$change")" "$(file $((change - 1)))" >/dev/null && fail "change $change changes nothing"
done
[ -e "$(file 0-set4)" ] && fail "a fourth change was written"
[ -e "$(file 4-set1)" ] && fail "a graph that was changed since was taken for what the executable is"
grep -qF ', 8 nodes set, 1 node enabled or disabled' "$scratch/summary" || fail "the first executable's counts"
grep -qF ', 1 node set (not followed: the graph that it was made of had been changed since)' "$scratch/summary" ||
  fail "why the last executable is not followed"

if [ "$failures" != 0 ]; then
  cat "$scratch/summary"
  exit 1
fi
echo "all checks passed"
