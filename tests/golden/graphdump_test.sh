#!/bin/bash
# graphdump from the outside: exit status, output and messages.
#   graphdump_test.sh PATH_OF_GRAPHDUMP TESTS_DIRECTORY
set -u
graphdump=$1
golden=$2/golden
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect NAME STATUS COMMAND...: runs the command, keeps what it printed for says and complains.
expect() {
  name=$1
  local want=$2
  shift 2
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  local got=$?
  [ "$got" = "$want" ] || fail "exit status $got, not $want"
}
fail() {
  echo "FAILED: $name: $1"
  head -n 20 "$scratch/out" | sed 's/^/  out: /'
  head -n 20 "$scratch/err" | sed 's/^/  err: /'
  failures=$((failures + 1))
}
says() { grep -qF -- "$1" "$scratch/out" || fail "standard output lacks: $1"; }
complains() { grep -qF -- "$1" "$scratch/err" || fail "standard error lacks: $1"; }
is_silent() { [ ! -s "$scratch/err" ] || fail "standard error is not empty"; }
prints() { cmp -s "$1" "$scratch/out" || fail "standard output is not $1"; }

for graph in empty chain fork_join nested structures conditional; do
  expect "show $graph as text" 0 "$graphdump" show "$golden/$graph.cgrt.json"
  prints "$golden/$graph.txt"
  is_silent
  expect "show $graph as JSON" 0 "$graphdump" show "$golden/$graph.cgrt.json" --format json
  prints "$golden/$graph.cgrt.json"
  expect "show $graph as DOT" 0 "$graphdump" show "$golden/$graph.cgrt.json" --format dot
  prints "$golden/$graph.dot"
  is_silent
  expect "show $graph as HTML" 0 "$graphdump" show "$golden/$graph.cgrt.json" --format html
  says "<!DOCTYPE html>"
  says '"counts": {"nodes": '
  is_silent
  expect "show $graph from standard input" 0 bash -c '"$1" show - <"$2"' - "$graphdump" "$golden/$graph.cgrt.json"
  prints "$golden/$graph.txt"
  expect "stats of $graph as text" 0 "$graphdump" stats "$golden/$graph.cgrt.json"
  prints "$golden/$graph.stats.txt"
  is_silent
  expect "stats of $graph as JSON" 0 "$graphdump" stats "$golden/$graph.cgrt.json" --format json
  prints "$golden/$graph.stats.json"
  is_silent
  expect "stats of $graph from standard input" 0 bash -c '"$1" stats - <"$2"' - "$graphdump" "$golden/$graph.cgrt.json"
  prints "$golden/$graph.stats.txt"
done

expect "names of kernels are shortened" 0 "$graphdump" show "$golden/chain.cgrt.json"
says "kernel  reduce<double, 4>"
expect "or not" 0 "$graphdump" show "$golden/chain.cgrt.json" --full-names
says "kernel  blas::reduce<double, 4>"

"$graphdump" show "$golden/structures.cgrt.json" --format html >"$scratch/page.html"
expect "a page is the same bytes on every run" 0 "$graphdump" show "$golden/structures.cgrt.json" --format html
prints "$scratch/page.html"

mkdir "$scratch/bin" "$scratch/nothing"
pretend_dot() { printf '#!/bin/bash\n%s\n' "$1" >"$scratch/bin/dot" && chmod +x "$scratch/bin/dot"; }
svg() { env PATH="$1:/usr/bin:/bin" "$graphdump" show "$golden/chain.cgrt.json" --format svg; }
pretend_dot 'echo "<svg> $*" && cat'
expect "dot draws the picture" 0 svg "$scratch/bin"
says "<svg> -Tsvg"
says "digraph cgrt {"
is_silent
pretend_dot 'echo "half a picture" && echo "no fonts" >&2 && exit 3'
expect "a dot that fails is an error" 2 svg "$scratch/bin"
complains "no fonts"
complains "graphdump: dot failed with exit status 3"
[ ! -s "$scratch/out" ] || fail "half a picture is printed"
pretend_dot 'kill -KILL $$'
expect "a dot that is killed is an error" 2 svg "$scratch/bin"
complains "graphdump: dot ended by signal 9"
expect "without dot the package is named" 2 \
  env PATH="$scratch/nothing" "$graphdump" show "$golden/chain.cgrt.json" --format svg
complains "install the package graphviz"

node() { echo "{\"id\": $1, \"kind\": \"empty\"}"; }
{
  echo '{"schema": "cgrt-graph", "version": 1, "nodes": ['
  for id in {0..98}; do echo "$(node "$id"),"; done
  echo "$(node 99)], \"edges\": [], \"allocations\": []}"
} >"$scratch/hundred.cgrt.json"
expect "nodes that repeat are counted" 0 "$graphdump" show "$scratch/hundred.cgrt.json"
says "... the node above repeats 99 times, up to node 99"
expect "or all shown" 0 "$graphdump" show "$scratch/hundred.cgrt.json" --all
says "99  empty"

expect "a graph is the same as itself" 0 "$graphdump" diff "$golden/chain.cgrt.json" "$golden/chain.cgrt.json"
says "same graph: 4 nodes, 3 edges"
is_silent

sed 's/"grid": \[4, 1, 1\]/"grid": [8, 1, 1]/' "$golden/chain.cgrt.json" >"$scratch/changed.cgrt.json"
expect "another grid is a difference" 1 "$graphdump" diff "$golden/chain.cgrt.json" "$scratch/changed.cgrt.json"
says 'node 1 "scale"'
says "  grid: (4,1,1) -> (8,1,1)  [rebind]"
says "cuGraphExecUpdate: taken over"
says "verdict: rebind"
is_silent

sed 's/"scale"/"shift"/' "$golden/chain.cgrt.json" >"$scratch/function.cgrt.json"
expect "another function is set" 1 "$graphdump" diff "$golden/chain.cgrt.json" "$scratch/function.cgrt.json"
says 'node 1 "scale"'
says '  function: "scale" -> "shift"  [set-params: to a function'
says "verdict: set-params"

sed '/"kind": "memset"/s/"width": 1024/"width": 1024, "height": 2, "pitch": 4096/; s/"shared_bytes": 1024/"shared_bytes": 2048/' \
  "$golden/fork_join.cgrt.json" >"$scratch/rows.cgrt.json"
expect "each change has its verdict, and the whole" 1 \
  "$graphdump" diff "$golden/fork_join.cgrt.json" "$scratch/rows.cgrt.json"
cat >"$scratch/want" <<'END'
node 1 (memset)
  height: 1 -> 2  [instantiate anew: a memset of several rows changes its address and value only]
  pitch: 0 -> 4096  [instantiate anew: a memset of several rows changes its address and value only]
node 2 "scores"
  shared bytes: 1024 -> 2048  [set-params]
cuGraphExecUpdate: refused: a memset of several rows changes its address and value only
verdict: instantiate anew (2 of 3 changes need it), the others: set-params
END
prints "$scratch/want"

expect "a graph is emitted as a program" 0 "$graphdump" emit "$golden/nested.cgrt.json"
prints "$golden/nested.emit.txt"
is_silent
expect "a missing file is not emitted" 2 "$graphdump" emit "$scratch/missing.cgrt.json"
complains "missing.cgrt.json: cannot be opened"

for factor in 00000040 00004040; do # 2.0f, 3.0f
  sed "s/\"00000040\"/\"$factor\"/; s/\"fill\"/\"philox_fill\"/
    s/\"offset\": 12, \"size\": 4, \"bytes\": \"00100000\"/\"offset\": 16, \"size\": 8, \"bytes\": \"2a00000000000000\"/" \
    "$golden/chain.cgrt.json" >"$scratch/step_$factor.cgrt.json"
done
expect "what varies between captures is listed, and what does not" 1 \
  "$graphdump" diff --varying "$scratch/step_00000040.cgrt.json" "$scratch/step_00004040.cgrt.json" \
  "$scratch/step_00000040.cgrt.json"
cat >"$scratch/want" <<'END'
4 kernels in all 3 graphs
arguments that vary:
  node 1 "scale"
    argument 2, 4 bytes: 2.0f, 3.0f, 2.0f
numbers that are the same in all graphs, of kernels with arguments that vary (if one should vary, it was baked in):
  "scale", 1 node
    argument 3, 4 bytes: 1024
the same in all graphs, and perhaps a seed or offset of random numbers:
  node 0 "philox_fill"
    argument 2, 8 bytes: 42
END
prints "$scratch/want"
expect "captures in which nothing varies" 0 "$graphdump" diff --varying "$golden/nested.cgrt.json" "$golden/nested.cgrt.json"
says "no argument varies"
expect "more than two graphs are for --varying" 2 \
  "$graphdump" diff "$golden/chain.cgrt.json" "$golden/chain.cgrt.json" "$golden/chain.cgrt.json"
complains "only --varying takes more than two graphs"

expect "standard input is compared with a file" 1 \
  bash -c '"$1" diff "$2" - <"$3"' - "$graphdump" "$golden/empty.cgrt.json" "$golden/chain.cgrt.json"
says 'only in -: node 0 "fill"'
says 'after node 0 "fill"'

expect "standard input twice is refused" 2 "$graphdump" diff - -
complains "only one of the two graphs can be standard input"

expect "lint of the golden graphs" 0 bash -c 'cd "$1" && shift && "$@"' - "$golden" "$graphdump" lint \
  {empty,chain,fork_join,nested,structures,conditional}.cgrt.json
prints "$golden/lint.txt"
is_silent
expect "no committed graph has an error" 0 bash -c 'find "$1" -name "*.cgrt.json" -not -path "*/build/*" -exec "$2" lint {} +' - \
  "$2/.." "$graphdump"
says "docs/graph.cgrt.json: 0 errors, "
while read -r count; do
  [ "$count" -le 5 ] || fail "a committed graph has $count warnings"
done < <(grep -o '[0-9]* warning' "$scratch/out" | cut -d" " -f1)

for pair in "0 6" "6 0" "scores gelu" "2 softmax" "5 5"; do
  "$graphdump" why "$golden/fork_join.cgrt.json" $pair
done >"$scratch/why.txt"
for pair in "6 7" "failed 4" "step 1"; do
  "$graphdump" why "$golden/conditional.cgrt.json" $pair
done >>"$scratch/why.txt"
"$graphdump" why "$golden/nested.cgrt.json" 2 5 >>"$scratch/why.txt"
expect "why of the golden graphs" 0 cat "$scratch/why.txt"
prints "$golden/why.txt"

sed 's/{"from": \([0-2]\), "to": \([1-3]\)}/{"from": \1, "to": \2, "from_port": 1, "type": "programmatic"}/' \
  "$golden/chain.cgrt.json" >"$scratch/programmatic.cgrt.json"
expect "behind programmatic edges all have to wait" 0 "$graphdump" why "$scratch/programmatic.cgrt.json" 0 3
says 'ends before node 3 "stop" has waited in its code, if node 1 "scale" and node 2 "blas::reduce<double, 4>" wait in their code: 3 edges'
sed 's/{"from": 2, "to": 3, [^}]*}/{"from": 2, "to": 3}/' "$scratch/programmatic.cgrt.json" >"$scratch/then_full.cgrt.json"
expect "up to a full one" 0 "$graphdump" why "$scratch/then_full.cgrt.json" 0 3
says 'ends before node 3 "stop" starts, if node 1 "scale" and node 2 "blas::reduce<double, 4>" wait in their code: 3 edges'

cat >"$scratch/racy.cgrt.json" <<'EOG'
{"schema": "cgrt-graph", "version": 1, "nodes": [
  {"id": 0, "kind": "memset", "destination": [0, 0], "value": 0, "element_bytes": 4, "width": 64},
  {"id": 1, "kind": "memcpy", "destination": [1, 0], "source": [0, 128], "width_bytes": 512}],
 "edges": [], "allocations": [{"id": 0, "kind": "device", "device": 0, "bytes": 4096}, {"id": 1, "kind": "pageable host"}]}
EOG
expect "a race is an error" 1 "$graphdump" lint "$scratch/racy.cgrt.json"
says "racy.cgrt.json: 1 error, 1 warning, 0 notes"
says "error race: node 0 (memset) and node 1 (memcpy) are not ordered, and both touch device#0 [128, 256); node 0 writes."
says "warning pageable-operand: node 1 (memcpy)"
is_silent
expect "a rule can be left out" 0 "$graphdump" lint "$scratch/racy.cgrt.json" --ignore race
says "0 errors, 1 warning"
expect "also before the file" 0 "$graphdump" lint --ignore race "$scratch/racy.cgrt.json"
expect "warnings can be errors" 1 "$graphdump" lint "$scratch/racy.cgrt.json" --ignore race --strict
says "error pageable-operand"
expect "rules can be left out together" 0 \
  "$graphdump" lint "$scratch/racy.cgrt.json" --strict --ignore race,pageable-operand
expect "lint as JSON" 1 "$graphdump" lint "$scratch/racy.cgrt.json" "$golden/empty.cgrt.json" --format json
says '"rule": "race", "severity": "error", "nodes": [0, 1]'
says '"rule": "empty-graph", "severity": "note", "nodes": []'
expect "lint reads standard input" 1 bash -c '"$1" lint - <"$2"' - "$graphdump" "$scratch/racy.cgrt.json"
says "-: 1 error"
expect "lines are limited" 1 "$graphdump" lint "$scratch/racy.cgrt.json" --limit 1
says "and 1 line more: --limit 0 prints all"
expect "limits that hold" 0 "$graphdump" lint "$golden/chain.cgrt.json" --expect 'nodes<=4, host=0, kernel>=4'
says "chain.cgrt.json: 0 errors"
expect "a limit that does not hold is an error" 1 "$graphdump" lint "$golden/chain.cgrt.json" --expect 'nodes<=3,host=0'
says "error expect: nodes is 4, and is to be <= 3."
expect "a limit of what does not exist is a failure" 2 "$graphdump" lint "$golden/chain.cgrt.json" --expect 'nods<=3'
complains "--expect: column 1: expected one of allocated_bytes, "
expect "a limit without a number is a failure" 2 "$graphdump" lint "$golden/chain.cgrt.json" --expect 'nodes<='
complains "--expect: column 8: expected a number below 2^64, found the end."
expect "no limit is a failure" 2 "$graphdump" lint "$golden/chain.cgrt.json" --expect ''
complains "there is no limit in it"
expect "an unknown rule is a failure" 2 "$graphdump" lint "$golden/chain.cgrt.json" --ignore races
complains 'there is no rule "races"; there are not-valid, race, '
expect "lint without a graph is an error" 2 "$graphdump" lint
complains "FILE is required"
expect "standard input twice is refused by lint" 2 "$graphdump" lint - -
complains "only one of the graphs can be standard input"
expect "a missing file is a failure of lint" 2 "$graphdump" lint "$scratch/racy.cgrt.json" "$scratch/missing.cgrt.json"
complains "missing.cgrt.json: cannot be opened"
expect "a file that is no graph is a failure of lint" 2 "$graphdump" lint "$0"
complains "not JSON"
sed 's/\[0, 128\]/[7, 128]/' "$scratch/racy.cgrt.json" >"$scratch/invalid.cgrt.json"
expect "a graph that is not valid is a failure of lint" 2 "$graphdump" lint "$scratch/invalid.cgrt.json"
complains "points into allocation 7"

# A bundle of two graphs (unit/saved/golden_bundle_test.cpp), and one that is damaged.
bundle=$golden/step.bundle
expect "show of a bundle says what is in it" 0 "$graphdump" show "$bundle"
prints "$golden/step.bundle.txt"
is_silent
"$graphdump" show "$bundle:decode" --format json >"$scratch/decode.cgrt.json"
expect "a graph of a bundle is shown" 0 "$graphdump" show "$bundle:decode"
says "1  kernel  scale "
for command in stats lint emit "show --format dot"; do
  expect "$command of a graph of a bundle" 0 "$graphdump" $command "$bundle:decode"
  cp "$scratch/out" "$scratch/want"
  expect "$command of the same as a file" 0 "$graphdump" $command "$scratch/decode.cgrt.json"
  [ "$command" = lint ] || prints "$scratch/want"
done
expect "why of a graph of a bundle" 0 "$graphdump" why "$bundle:prefill" 0 scale
says "1 edge"
expect "diff of two graphs of a bundle" 0 "$graphdump" diff "$bundle:prefill" "$bundle:decode"
says "same graph: 3 nodes"
expect "lint of a bundle looks at all its graphs" 0 "$graphdump" lint "$bundle"
says "step.bundle:prefill: 0 errors"
says "step.bundle:decode: 0 errors"
expect "a bundle with several graphs is not one" 2 "$graphdump" stats "$bundle"
complains "step.bundle: the bundle has several graphs: prefill, decode. Name one: $bundle:prefill"
expect "also as JSON" 2 "$graphdump" show "$bundle" --format json
complains "the bundle has several graphs"
expect "a graph that the bundle has not is an error" 2 "$graphdump" stats "$bundle:encode"
complains 'step.bundle: the bundle has no graph "encode"; it has prefill, decode'
expect "verify reads all files" 0 "$graphdump" verify "$bundle"
says "step.bundle: 2 graphs, 1 module (188 bytes), 3 pieces of memory (12.4 kB): all hashes right"
is_silent
cp -r "$bundle" "$scratch/damaged.bundle"
rm "$scratch"/damaged.bundle/graphs/prefill.*
sed -i 's/scale_0/scale_3/' "$scratch"/damaged.bundle/code/*
expect "verify lists what is wrong" 1 "$graphdump" verify "$scratch/damaged.bundle"
says "cgrt.json: is not there, and the manifest names it"
says ": has the hash "
[ "$(wc -l <"$scratch/out")" = 2 ] || fail "not two lines"
expect "a graph that is not damaged is read all the same" 0 "$graphdump" show "$scratch/damaged.bundle:decode"
expect "show of a bundle whose graph is missing is an error" 2 "$graphdump" show "$scratch/damaged.bundle"
complains "graphdump: $scratch/damaged.bundle/graphs/prefill."
sed -i 's/0x22/0x23/' "$scratch/damaged.bundle/manifest.json"
expect "a manifest that was changed is an error of verify" 2 "$graphdump" verify "$scratch/damaged.bundle"
complains "manifest.json: has the hash "
expect "a folder without a manifest is no bundle" 2 "$graphdump" verify "$golden"
complains "golden/manifest.json: cannot be opened: No such file"
expect "verify without a bundle is an error" 2 "$graphdump" verify
complains "DIR is required"
expect "a folder without a manifest cannot be shrunk" 2 "$graphdump" shrink "$golden"
complains "golden/manifest.json: cannot be opened: No such file"
expect "a bundle is shrunk within some time" 2 "$graphdump" shrink "$bundle" --graph-seconds 0
complains "--graph-seconds"
cp "$golden/chain.cgrt.json" "$scratch/a:b.cgrt.json"
expect "a file may have a colon in its name" 0 "$graphdump" show "$scratch/a:b.cgrt.json"
prints "$golden/chain.txt"

# A run: two graphs that set the same memory in different streams, and one of an update.
mkdir "$scratch/run"
cp "$golden/chain.cgrt.json" "$scratch/run/app-7-0.cgrt.json"
cp "$golden/chain.cgrt.json" "$scratch/run/app-7-1.cgrt.json"
cp "$golden/empty.cgrt.json" "$scratch/run/app-7-0-update1.cgrt.json"
recorded() { # NUMBER STREAMS [MORE]: a graph of run.json
  echo "{\"file\": \"app-7-$1.cgrt.json\", \"nodes\": 4, \"launches\": 9, \"uploads\": 0, \"updates\": 0, \"set_params\": 0,
    \"streams\": [$2], ${3:-} \"memory\": [71, 72, 73]}"
}
write_run() { # GRAPHS
  echo "{\"schema\": \"cgrt-run-1\", \"processes\": [{\"program\": \"app\", \"process\": 7, \"graphs\": [$1]}]}" >"$scratch/run/run.json"
}
write_run "$(recorded 0 '"0x10"'), $(recorded 1 '"0x20", "0x30"')"
expect "lint of a run looks at its graphs and at what was done" 0 "$graphdump" lint "$scratch/run"
cat >"$scratch/want" <<END
$scratch/run/app-7-0.cgrt.json: 0 errors, 0 warnings, 0 notes
$scratch/run/app-7-1.cgrt.json: 0 errors, 0 warnings, 1 note
note several-streams: app-7-1.cgrt.json was launched 9 times, into 2 streams: CUDA orders launches of one executable after each other, also those of other streams. Instantiate once for each stream, with memory of its own, where launches are to overlap.
$scratch/run/app-7-0-update1.cgrt.json: 0 errors, 0 warnings, 1 note
note empty-graph: The graph has no nodes: a launch does nothing. Make sure that the work was captured.
$scratch/run/run.json: 0 errors, 0 warnings, 1 note
note shared-memory: app-7-0.cgrt.json (launched into stream 0x10) and app-7-1.cgrt.json (streams 0x20, 0x30): node 0 "fill" gets the address device#0 of the first, and node 0 "fill" gets the address device#0 of the second, the same memory. Give each memory of its own, or have one stream wait for the other; nothing is wrong where they only read.
END
prints "$scratch/want"
is_silent
cp "$scratch/out" "$scratch/want"
expect "run.json stands for its folder" 0 "$graphdump" lint "$scratch/run/run.json"
prints "$scratch/want"
expect "also without a folder's name" 0 bash -c 'cd "$1" && "$2" lint run.json' - "$scratch/run" "$graphdump"
says "app-7-1.cgrt.json: 0 errors, 0 warnings, 1 note"
expect "--ignore, --expect and --limit are for runs, too" 1 "$graphdump" lint "$scratch/run" --ignore shared-memory,several-streams \
  --expect 'nodes>=4'
says "run.json: 0 errors, 0 warnings, 0 notes"
says "error expect: nodes is 0, and is to be >= 4."
expect "lint of a run as JSON" 0 "$graphdump" lint "$scratch/run" --format json
says '"rule": "shared-memory", "severity": "note", "nodes": [], "text": "app-7-0.cgrt.json '
sed -i 's/"memory": \[71, 72, 73\]/"memory": [71]/' "$scratch/run/run.json"
expect "a run of other graphs is a failure of lint" 2 "$graphdump" lint "$scratch/run"
complains 'graphdump: run.json and app-7-0.cgrt.json are not of one run: "memory" has 1 number, and the graph 3 allocations.'
write_run "$(recorded 0 '"0x10"' '"stack_nodes": [0],')"
expect "warnings of a run can be errors" 1 "$graphdump" lint "$scratch/run" --strict
says 'error stack-memory: node 0 "fill": what they use was on the stack of the thread that instantiated the graph.'
write_run "$(recorded 2 '"0x10"')"
expect "a graph of a run that is missing is a failure of lint" 2 "$graphdump" lint "$scratch/run"
complains "run/app-7-2.cgrt.json: cannot be opened: No such file or directory"
write_run "$(recorded /../../../etc/passwd '"0x10"')"
expect "a run does not lead out of its folder" 2 "$graphdump" lint "$scratch/run"
complains "run/run.json: processes[0].graphs[0].file: expected the name of a file beside run.json, without folder, found"
write_run ""
truncate -s 40 "$scratch/run/run.json"
expect "a run that is cut off is a failure of lint" 2 "$graphdump" lint "$scratch/run"
complains "run/run.json: not JSON: line 1, column 41"
rm "$scratch/run/run.json"
expect "a folder without a run is a failure of lint" 2 "$graphdump" lint "$scratch/run"
complains "run/run.json: cannot be opened: No such file or directory"

# The table of the page is what the program says.
"$graphdump" lint --rules |
  sed -E 's/^([^ ]+) +([^ ]+) +(.*)$/| \1 | \2 | \3 |/' >"$scratch/rules.txt"
sed -n '/<!-- rules -->/,/<!-- end -->/p' "$2/../docs/lint.md" | sed '1,3d;$d' >"$scratch/table.txt"
expect "docs/lint.md lists the rules" 0 cat "$scratch/table.txt"
prints "$scratch/rules.txt"

expect "a node that is not there is a failure of why" 2 "$graphdump" why "$golden/chain.cgrt.json" 0 4
complains "there is no node 4; the graph has 4 nodes, numbered from 0."
expect "a number that is too large is, too" 2 "$graphdump" why "$golden/chain.cgrt.json" 0 99999999999
complains "there is no node 99999999999"
expect "a name that several kernels have is a failure of why" 2 "$graphdump" why "$golden/chain.cgrt.json" e 0
complains '"e" is the name of several kernels: node 1 "scale", node 2 "blas::reduce<double, 4>". Take the number of one.'
expect "a name that no kernel has is a failure of why" 2 "$graphdump" why "$golden/chain.cgrt.json" 0 gemm
complains 'no kernel is called "gemm"'
expect "a missing file is a failure of why" 2 "$graphdump" why "$scratch/missing.cgrt.json" 0 1
complains "cannot be opened"

for dump in driver_{verbose,plain,captured,captured_plain,children,conditional}; do
  expect "show $dump, a dump of the driver" 0 "$graphdump" show "$golden/$dump.dot"
  prints "$golden/$dump.txt"
  is_silent
  "$graphdump" show "$golden/$dump.dot" --format json >"$scratch/$dump.cgrt.json"
  expect "$dump as JSON is the same graph" 0 "$graphdump" diff "$scratch/$dump.cgrt.json" "$golden/$dump.dot"
  expect "$dump from standard input" 0 bash -c '"$1" show - <"$2"' - "$graphdump" "$golden/$dump.dot"
  prints "$golden/$dump.txt"
  for command in stats lint emit "show --format html" "show --format dot"; do
    expect "$command of $dump" 0 "$graphdump" $command "$golden/$dump.dot"
    is_silent
  done
done
expect "why of a dump of the driver" 0 "$graphdump" why "$golden/driver_verbose.dot" scale triton
says "4 edges"
expect "a picture by graphdump is not a graph" 2 "$graphdump" show "$golden/chain.dot"
complains "chain.dot: line 1: a picture that graphdump wrote"
head -c 1000 "$golden/driver_verbose.dot" >"$scratch/cut.dot"
expect "a dump that is cut off is an error, with its place" 2 "$graphdump" show "$scratch/cut.dot"
complains "cut.dot: not DOT: line 14: the string that begins here has no end"
awk -v nodes=100000 'BEGIN {
  print "digraph dot {\nsubgraph cluster_1 {\nlabel=\"graph_1\" graph[style=\"dashed\"];"
  for (i = 0; i < nodes; ++i) {
    printf "\"graph_1_node_%d\"[style=\"bold\" shape=\"record\" label=\"{KERNEL\n| {ID | %d (topoId: 0) | ", i, i
    printf "_Z5scalePfPKffi\\<\\<\\<%d,128,0\\>\\>\\>}\n| {cooperative | 0}\n| {priority | 0}\n}\"];\n", i + 1
  }
  for (i = 1; i < nodes; ++i) printf "\"graph_1_node_%d\" -> \"graph_1_node_%d\" [headlabel=0];\n", i - 1, i
  print "}\n}"
}' >"$scratch/many.dot"
expect "a dump of 100,000 nodes is soon read" 0 timeout 60 "$graphdump" show "$scratch/many.dot"
says "graph: 100000 nodes, 99999 edges"

expect "a missing file is an error" 2 "$graphdump" show "$scratch/missing.cgrt.json"
complains "graphdump: $scratch/missing.cgrt.json: cannot be opened"
expect "a missing file is an error of diff, not a difference" 2 \
  "$graphdump" diff "$golden/chain.cgrt.json" "$scratch/missing.cgrt.json"
complains "missing.cgrt.json: cannot be opened"
expect "a missing file is an error of stats" 2 "$graphdump" stats "$scratch/missing.cgrt.json"
complains "graphdump: $scratch/missing.cgrt.json: cannot be opened"
expect "a directory that is no bundle is an error" 2 "$graphdump" show "$scratch"
complains "manifest.json: cannot be opened"
expect "a shell script is not a graph" 2 "$graphdump" show "$0"
complains "not JSON: line 1, column 1"
echo '{"schema": "cgrt-record-1"}' >"$scratch/record.json"
expect "a record is not a graph" 2 "$graphdump" show "$scratch/record.json"
complains "not a cgrt graph"
echo '{"schema": "cgrt-graph", "version": 7}' >"$scratch/newer.json"
expect "a newer version is refused by name" 2 "$graphdump" show "$scratch/newer.json"
complains "version 7; this reader knows 1"
expect "empty standard input is an error" 2 "$graphdump" show -
complains "standard input: not JSON"

expect "--version names the program and the format" 0 "$graphdump" --version
says "graphdump "
says "cgrt-graph version 5 and cgrt-bundle version 1"
expect "--help lists the commands" 0 "$graphdump" --help
says "show"
says "stats"
says "diff"
says "lint"
says "shrink"
says "verify"
says "why"
expect "--help of a command lists its options" 0 "$graphdump" show --help
says "--format"
expect "no command is an error" 2 "$graphdump"
complains "subcommand"
expect "an unknown command is an error" 2 "$graphdump" frobnicate
expect "an unknown format is an error" 2 "$graphdump" show "$golden/chain.cgrt.json" --format xml
complains "xml"
expect "a format of show is not one of stats" 2 "$graphdump" stats "$golden/chain.cgrt.json" --format dot
complains "dot"
expect "stats without a graph is an error" 2 "$graphdump" stats
complains "FILE is required"
expect "one graph is too few for diff" 2 "$graphdump" diff "$golden/chain.cgrt.json"
complains "B is required"

# A reader that leaves at once: the status is graphdump's own, and not that of a signal. The graph
# is larger than a pipe's buffer, so that the write meets the closed end.
{
  echo '{"schema": "cgrt-graph", "version": 1, "edges": [], "allocations": [], "nodes": ['
  for ((i = 0; i < 20000; ++i)); do echo "{\"id\": $i, \"kind\": \"empty\"},"; done
  echo '{"id": 20000, "kind": "empty"}]}'
} >"$scratch/large.cgrt.json"
expect "a closed pipe ends quietly" 0 \
  bash -c '"$1" show "$2" | head -n 1; exit "${PIPESTATUS[0]}"' - "$graphdump" "$scratch/large.cgrt.json"
says "graph: 20001 nodes"
is_silent
expect "a closed pipe ends a picture quietly" 0 \
  bash -c '"$1" show "$2" --format dot | head -n 1; exit "${PIPESTATUS[0]}"' - "$graphdump" "$scratch/large.cgrt.json"
says "digraph cgrt {"
is_silent
if [ -w /dev/full ]; then
  expect "a full disk is an error" 2 bash -c '"$1" show "$2" >/dev/full' - "$graphdump" "$golden/chain.cgrt.json"
  complains "standard output cannot be written"
fi

# Every command takes time in proportion to the file: a second for this one. Work on all nodes for each child graph
# would take many minutes.
awk -v children=100000 'BEGIN {
  print "{\"schema\": \"cgrt-graph\", \"version\": 2, \"nodes\": ["
  for (i = 0; i < children; ++i) printf "{\"id\": %d, \"kind\": \"child graph\", \"scope\": \"s%d/t\"},\n", i, i
  for (i = 0; i < 2 * children; ++i) {
    printf "{\"id\": %d, \"kind\": \"empty\", \"body\": %d}%s\n", children + i, i / 2 + 1, i + 1 < 2 * children ? "," : ""
  }
  print "], \"edges\": ["
  for (i = 0; i < children; ++i) {
    printf "{\"from\": %d, \"to\": %d}%s\n", children + 2 * i, children + 2 * i + 1, i + 1 < children ? "," : ""
  }
  print "], \"allocations\": [], \"bodies\": ["
  for (i = 0; i < children; ++i) printf "{\"id\": %d, \"owner\": %d}%s\n", i + 1, i, i + 1 < children ? "," : ""
  print "]}"
}' >"$scratch/children.cgrt.json"
for arguments in "show" "show --format dot" "show --format json" "show --format html" "stats" "stats --format json" "lint"; do
  expect "$arguments of 100,000 child graphs is soon done" 0 timeout 240 "$graphdump" $arguments "$scratch/children.cgrt.json"
done
expect "diff of 100,000 child graphs is soon done" 0 \
  timeout 240 "$graphdump" diff "$scratch/children.cgrt.json" "$scratch/children.cgrt.json"
says "same graph: 300000 nodes"

# Graphs of programs that know nothing of cgrt, as `graphdump run` and `time` recorded them on H200s
# and an H100 (tests/recording): a PyTorch transformer layer, torch.compile, JAX, CuPy, plain CUDA.
recorded=$2/recording/graphs
for graph in transformer:14 compiled:5 jitted:8 cupy_chain:12 plain_captured:4 plain_explicit:8 plain_updated:4 timed:7 \
  timed_chain:20; do
  file=$recorded/${graph%:*}.cgrt.json
  expect "show ${graph%:*}" 0 "$graphdump" show "$file"
  says "graph: ${graph#*:} nodes"
  expect "stats of ${graph%:*}" 0 "$graphdump" stats "$file"
  expect "the file of ${graph%:*} as this version writes it" 0 "$graphdump" show "$file" --format json
  prints "$file"
done
expect "the ranges of a transformer layer" 0 "$graphdump" show "$recorded/transformer.cgrt.json"
says "      feed_forward/"
expect "an update" 1 "$graphdump" diff "$recorded/plain_captured.cgrt.json" "$recorded/plain_updated.cgrt.json"
says "argument 1: 2.0f -> 4.0f"
expect "the times of a graph with branches and a child" 0 "$graphdump" stats "$recorded/timed.cgrt.json"
says "critical path by time: 3 nodes, 522.4 us"
expect "the times of a chain" 0 "$graphdump" stats "$recorded/timed_chain.cgrt.json"
says "21 launches of 2167.9 us (median), idle 0.1 %; 20 of 20 nodes have a time, one after the other 2166.3 us"

if [ "$failures" != 0 ]; then
  echo "$failures checks failed"
  exit 1
fi
echo "all checks passed"
