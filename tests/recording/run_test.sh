#!/usr/bin/env bash
# graphdump run from the outside, on commands that use no GPU: what the command prints, takes and returns is its own.
#   run_test.sh PATH_OF_GRAPHDUMP [CXX]      without a compiler, no program is recorded
set -u
graphdump=$1 cxx=${2:-}
sources=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect NAME STATUS COMMAND...
expect() {
  name=$1
  local want=$2
  shift 2
  "$@" >"$scratch/out" 2>"$scratch/err"
  local got=$?
  [ "$got" = "$want" ] || fail "exit status $got, not $want"
}
fail() {
  echo "FAILED: $name: $1"
  sed 's/^/  /' "$scratch/out" "$scratch/err" | head -n 20
  failures=$((failures + 1))
}
prints() { [ "$(cat "$scratch/out")" = "$1" ] || fail "standard output is not: $1"; }
complains() { grep -qF -- "$1" "$scratch/err" || fail "standard error lacks: $1"; }
run() { "$graphdump" run -o "$scratch/graphs" -- "$@"; }

expect "the command's output and status" 3 run bash -c 'echo out; echo err >&2; exit 3'
prints "out"
complains "err"
complains "no process of the command initialized CUDA"
[ -f "$scratch/graphs/run.json" ] || fail "there is no run.json"
expect "the command's input" 0 bash -c '"$1" run -o "$2" -- cat <<<"in"' - "$graphdump" "$scratch/graphs"
prints "in"
expect "the command's own options" 0 run printf '%s %s' --out -o
prints "--out -o"
expect "arguments in brackets" 0 run printf '%s|' '[a,b]' '[]' x -- y
prints "[a,b]|[]|x|--|y|"
expect "a -- of the command" 0 "$graphdump" run -o "$scratch/graphs" printf '%s|' -- x
prints "--|x|"
expect "which cannot be told without --" 2 "$graphdump" run -o "$scratch/graphs" printf '[a,b]'
complains "write -- before the command"
expect "a command that is killed" 137 bash -c '"$1" run -o "$2" -- bash -c "kill -KILL \$\$"; exit $?' - "$graphdump" "$scratch/graphs"
expect "a signal goes to the command" 7 bash -c '
  "$1" run -o "$2" -- bash -c "trap \"exit 7\" TERM; touch $3; while :; do sleep 0.05; done" & tool=$!
  while [ ! -e "$3" ] && kill -0 $tool; do sleep 0.05; done; kill -TERM $tool; wait $tool' - "$graphdump" "$scratch/graphs" "$scratch/ready"
expect "a command that is not there" 127 run /no/such/command
complains "graphdump: cannot run /no/such/command: No such file or directory"
expect "no command" 2 "$graphdump" run -o "$scratch/graphs"
complains "COMMAND is required"
expect "a folder that cannot be made" 2 "$graphdump" run -o /dev/null/graphs -- true
complains "graphdump: cannot make the folder /dev/null/graphs: Not a directory"
expect "another tool's place" 0 env CUDA_INJECTION64_PATH=/opt/profiler.so "$graphdump" time -o "$scratch/graphs" -- true
complains "CUDA_INJECTION64_PATH names /opt/profiler.so, which is not loaded in this run"
expect "another tool that does not disturb" 0 env CUDA_INJECTION64_PATH=/opt/profiler.so "$graphdump" run -o "$scratch/graphs" \
  -- bash -c 'echo "$CUDA_INJECTION64_PATH"'
prints "/opt/profiler.so"
expect "what the command sees" 0 run bash -c 'basename "$LD_PRELOAD"; [ -w "$GRAPHDUMP_FOLDER" ]'
prints "libgraphdump_preload.so"

expect "more MB than 64 bits have bytes for" 2 "$graphdump" run -o "$scratch/graphs" --max-mb 18446744073710 -- true
complains "--max-mb: Value 18446744073710 not in range"
expect "the largest number of MB" 0 "$graphdump" run -o "$scratch/graphs" --max-mb 18446744073709 -- \
  bash -c 'echo "$GRAPHDUMP_MAX_BYTES"'
prints "18446744073709000000"

save() { "$graphdump" save -o "$scratch/bundle" "$@"; }
expect "a command that is to be saved, and has no graphs" 3 save -- bash -c 'echo out; exit 3'
prints "out"
complains "graphdump: no graph was saved"
[ "$(stat -c %a "$scratch/bundle")" = 700 ] || fail "the folder is not the user's alone"
[ -z "$(ls -A "$scratch/bundle")" ] || fail "something was left in the folder"
touch "$scratch/bundle/mine"
expect "a folder with other files" 2 save -- true
complains "cannot save into $scratch/bundle: it has files that are none of a bundle's"
rm "$scratch/bundle/mine"
expect "an input that names no operand" 2 save --input x=first -- true
complains 'The operand "x=first" is not understood: it has too few parts'
expect "launch 0" 2 save --launch 0 -- true
expect "several graphs by number" 0 save --graph 0 --graph 3 true

# The driver reached in every way: the first program by a plugin (two launches), dlsym and cuGetProcAddress; the other
# one is linked against it (two launches more).
if [ -z "$cxx" ]; then
  echo "not run: programs for a fake driver"
else
  cd "$scratch" || exit 1
  name="programs for a fake driver"
  { "$cxx" -shared -fPIC -Wl,-soname,libcuda.so.1 -o libcuda.so.1 "$sources/fake_driver.cpp" &&
    "$cxx" -o user "$sources/driver_user.cpp" -ldl -pthread &&
    "$cxx" -DLINKED -o user_linked "$sources/driver_user.cpp" ./libcuda.so.1 -ldl -pthread &&
    "$cxx" -DLINKED -shared -fPIC -o plugin.so "$sources/driver_user.cpp" ./libcuda.so.1 -ldl -pthread; } >out 2>err ||
    fail "they do not compile"
  export LD_LIBRARY_PATH=$scratch
  user=$scratch/user user_linked=$scratch/user_linked plugin=$scratch/plugin.so
  expect "the driver found by a plugin, by dlsym and by cuGetProcAddress" 0 run "$user" "$plugin"
  complains "outside of graphs: 4 kernels launched"
  complains "4 graphs, launched 4 times"
  grep -q '"launches": 4, .*"streams": \["legacy", "per-thread [0-9]*"\], "has_more_streams": false' graphs/run.json ||
    fail "run.json lacks the two streams"
  [ "$(grep -o '"uploads": [0-9]' graphs/run.json | tr -d '\n')" = '"uploads": 0"uploads": 1"uploads": 0"uploads": 0' ] ||
    fail "run.json lacks the upload"
  expect "the driver linked by the program" 0 run "$user_linked"
  complains "outside of graphs: 2 kernels launched"
  expect "the driver reached in all ways" 0 run "$user_linked" "$plugin"
  complains "outside of graphs: 6 kernels launched"
  expect "parameters set node by node" 0 run "$user" --graph
  complains "launched 1 time, 2 nodes set (not followed: cuGraphClone refused the graph"
  complains "), 1 node enabled or disabled"
  expect "a graph that cannot be saved" 0 save -- "$user" --graph
  complains "Graph 0 was not saved: "
  complains "graphdump: no graph was saved"
  expect "graphs that were not asked for" 0 save --graph 7 -- "$user" --graph
  expect "a call of a plugin that ends a capture" 1 "$graphdump" explain -- "$user" --capture "$plugin"
  grep -qE "call of the same thread: cuMemAlloc_v2 returned 900.* The call came from plugin.so, in allocate_linked" err out ||
    fail "the plugin is not named"
  expect "a handle that another thread gets" 0 run "$user" --handle
  complains "2 graphs, launched 1 time"
  expect "captures of two threads at once" 0 run "$user" --threads
  complains "outside of graphs: 1 kernel launched"
  mkdir broken && cp "$graphdump" "$(dirname "$graphdump")/libgraphdump_preload.so" broken && : >broken/libgraphdump_inject.so
  expect "a recorder that cannot be loaded" 0 broken/graphdump run -o graphs -- "$user" --graph
  complains "graphdump: nothing is recorded of process "
  complains "libgraphdump_inject.so: file too short"
fi

if [ "$failures" != 0 ]; then
  echo "$failures checks failed"
  exit 1
fi
echo "all checks passed"
