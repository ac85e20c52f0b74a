#!/usr/bin/env bash
# sample_options.sh PROGRAM...: the command lines of samples and tools from outside. --help exits with 0; what is
# wrong exits with 2 and a sentence, before anything runs; neither leaves a file behind.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/here" && cd "$scratch/here" || exit 1
failures=0 checks=0

# expect STATUS PROGRAM ARGUMENT...
expect() {
  local want=$1 program=$2 got
  shift 2
  timeout 100 "$program" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  got=$?
  checks=$((checks + 1))
  name="${program##*/} $*"
  [ "$got" = "$want" ] || fail "exit status $got, not $want"
  [ "$want" != 2 ] || grep -q '[a-z]' "$scratch/err" || fail "no word on what is wrong"
  [ "$want" != 2 ] || [ ! -s "$scratch/out" ] || [ "$may_say" = yes ] || fail "something ran"
  [ -z "$(ls -A)" ] || { fail "left $(ls -A)"; rm -rf ./*; }
}
fail() {
  echo "FAILED: $name: $1"
  head -n 5 "$scratch/out" | sed 's/^/  out: /'
  head -n 5 "$scratch/err" | sed 's/^/  err: /'
  failures=$((failures + 1))
}
says() { grep -qF -- "$1" "$scratch/err" || fail "standard error lacks: $1"; }
wrong() { expect 2 "$@"; }
may_say=no

for program in "$@"; do
  expect 0 "$program" --help
  grep -q "Usage: ${program##*/}" "$scratch/out" || fail "the help names no ${program##*/}"
  expect 0 "$program" -h
  wrong "$program" --frobnicate
  says "--frobnicate"
  wrong "$program" --frobnicate=3
  wrong "$program" -x
  wrong "$program" one two three
  case ${program##*/} in
    first_graph | fork_join | while_loop)
      wrong "$program" ""
      wrong "$program" .
      wrong "$program" nowhere/graph.json
      says "there is no folder nowhere"
      ;;
    launch_overhead | occupancy_launch | mlp_step | graphbench)
      wrong "$program" --json
      wrong "$program" --json nowhere/record.json
      says "nowhere"
      wrong "$program" --json .
      ;;
  esac
  case ${program##*/} in
    launch_overhead)
      wrong "$program" --csv nowhere/record.csv
      wrong "$program" --graphs nowhere
      wrong "$program" --quick=7
      ;;
    mlp_step)
      for value in -1 0 7 12 2.5 1e3 nonsense "" 16392 4294967296 18446744073709551616; do
        wrong "$program" --hidden "$value"
        wrong "$program" --intermediate "${value/16392/65544}"
      done
      wrong "$program" --hidden 7
      says "--hidden: 7 is not a multiple of 8 from 8 to 16384"
      for value in 0 -3 1,0 1,-3 2.5 nonsense "," 16385 99999999999999999999; do wrong "$program" --tokens "$value"; done
      for value in 0 -1 2.5 nonsense 100001 99999999999999999999; do wrong "$program" --steps "$value"; done
      expect 0 "$program" --hidden 8 --intermediate 16 --tokens 3 --steps 1
      may_say=yes # that there is no GPU, before what follows from it
      if grep -q "^No GPU here" "$scratch/out"; then
        wrong "$program" --hidden 4096 --intermediate 14336
        says "too large for the simulator"
      fi
      may_say=no
      ;;
    graphbench)
      for value in 0 -1 2.5 nonsense "," 1,0 100001 99999999999999999999; do wrong "$program" --nodes "$value"; done
      for value in 14 -1 2.5 nonsense 10002; do wrong "$program" --pairs "$value"; done
      wrong "$program" --only nonsense
      wrong "$program" --csv nowhere/rows.csv
      wrong "$program" --check=7
      ;;
  esac
done
echo "$checks command lines, $failures failures"
[ "$checks" != 0 ] && [ "$failures" = 0 ]
