#!/usr/bin/env bash
# tools_test.sh ROOT: the scripts of tools/ through symlinks and from another folder, and what tools/run says of a
# build when its output is no terminal. Runs them in a copy, with programs in front of PATH that only pretend.
set -u
root=$1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree bin=$scratch/bin
failures=0
mkdir -p "$tree/build/dev" "$bin" "$scratch/links" "$scratch/elsewhere"
cp -r "$root/tools" "$root/.ci" "$tree"
cd "$scratch/elsewhere" || exit 1

# pretend PATH: the rest is its text.
pretend() {
  mkdir -p "$(dirname "$1")"
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}
pretend "$bin/nvcc" <<<'echo "Cuda compilation tools, release 13.0, V13.0.88"'
pretend "$bin/dpkg-query" <<<'echo "install ok installed"'
pretend "$bin/cmake" <<'TEXT'
[ "$1" = --build ] || exit 0
for i in 1 2 3; do echo "${NINJA_STATUS//\%f/$i}" | sed 's/%t/3/; s/$/Building CXX object some.o/'; done
echo "some.cpp:7: a warning that is of no use"
exit "$CMAKE_STATUS"
TEXT
for program in samples/first_graph/first_graph samples/launch_overhead/launch_overhead \
  samples/event_polling/event_polling samples/device_query/device_query tools/graphdump/graphdump; do
  pretend "$tree/build/dev/$program" </dev/null
done
pretend "$tree/tools/table.py" </dev/null
export PATH=$bin:$PATH CGRT_PROGRESS_SECONDS=0

# expect NAME STATUS COMMAND...
expect() {
  name=$1
  local want=$2 got
  shift 2
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  got=$?
  [ "$got" = "$want" ] || fail "exit status $got, not $want"
}
fail() {
  echo "FAILED: $name: $1"
  sed 's/^/  out: /' "$scratch/out"
  sed 's/^/  err: /' "$scratch/err"
  failures=$((failures + 1))
}
says() { grep -qF -- "$1" "$scratch/out" || fail "standard output lacks: $1"; }
is_silent_on() { ! grep -qF -- "$1" "$scratch/out" || fail "standard output has: $1"; }
complains() { grep -qF -- "$1" "$scratch/err" || fail "standard error lacks: $1"; }

for script in run carry record hooks/install; do ln -s "$tree/tools/$script" "$scratch/links/${script##*/}"; done
ln -s run "$scratch/links/run-again" # a link to a link

for run in "$tree/tools/run" "$scratch/links/run" "$scratch/links/run-again"; do
  CMAKE_STATUS=0 expect "${run#"$scratch"/} builds and runs the demo" 0 "$run" demo
  says "building: 2 of 3"
  says "== first_graph"
  is_silent_on "some.o"
  is_silent_on "of no use"
done
CMAKE_STATUS=1 expect "a build that fails says why" 1 "$scratch/links/run" demo
says "building: 3 of 3"
complains "some.cpp:7: a warning"
complains "$tree/build/dev/build.log has all of it"
expect "tools/run without a word says what it takes" 2 "$scratch/links/run"
complains "usage: tools/run demo|test"

git -C "$tree" init -q && touch "$tree/new"
expect "carry looks at the tree that it belongs to" 1 "$scratch/links/carry" out
complains "The tree has changes that are not committed"
mkdir programs && echo 0123abc >programs/COMMIT
pretend programs/behaviour_tests <<<'pwd; exit 3'
expect "record takes folders from where it was called, and works in its tree" 3 "$scratch/links/record" programs out
says "$tree"
[ -d out ] || fail "there is no folder out where it was called"
expect "the hooks are installed in the tree that they belong to" 0 "$scratch/links/install"
[ "$(git -C "$tree" config core.hooksPath)" = tools/hooks ] || fail "the tree has no hooks"

echo "$failures failures"
[ "$failures" = 0 ]
