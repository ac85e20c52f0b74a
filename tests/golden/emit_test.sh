#!/bin/bash
# Whether the programs of graphdump emit compile, and are the same at every call.
#   emit_test.sh PATH_OF_GRAPHDUMP PATH_OF_NVCC GRAPH.cgrt.json...             compiles; exit 77 without nvcc
#   KEEP=DIR emit_test.sh ...                                                  links them, too, into DIR
# On a machine with a GPU each of them then says "... instantiated, launched, done", or which call failed:
#   for program in DIR/*; do echo "$program"; "$program" || echo FAILED; done
set -u
graphdump=$1
nvcc=$2
shift 2
if ! command -v "$nvcc" >/dev/null; then
  echo "skipped: there is no $nvcc"
  exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failures=0

# What the other graphs do not have: memory of the graph's own, operations on memory, semaphores, a gap in arguments,
# an edge out of a node that comes later.
cat >"$scratch/memory.cgrt.json" <<'END'
{
  "schema": "cgrt-graph",
  "version": 4,
  "nodes": [
    {"id": 0, "kind": "mem alloc", "device": 0, "address": [1, 0], "bytes": 1024},
    {"id": 1, "kind": "kernel", "device": 0, "function": "odd\\\"name\\", "grid": [1, 1, 1], "block": [64, 1, 1], "shared_bytes": 65536, "arguments": [{"offset": 0, "size": 1, "bytes": "07"}, {"offset": 8, "size": 8, "pointer": [1, 256]}, {"offset": 32, "size": 12, "bytes": "010203040506070809101112"}, {"offset": 64, "size": 32, "bytes": "0000000000000000010000000000000000000000000000000000000000000000", "inner_pointers": [{"at": 0, "pointer": [2, 8]}]}]},
    {"id": 2, "kind": "mem free", "device": 0, "address": [1, 0]},
    {"id": 3, "kind": "batch mem op", "device": 0, "operations": [{"operation": "write", "address": [0, 0], "value": 5, "bytes": 4}, {"operation": "wait ==", "address": [0, 8], "value": 12884901888, "bytes": 8}, {"operation": "wait nor", "address": [0, 16], "value": 1, "bytes": 4}]},
    {"id": 4, "kind": "semaphore signal", "semaphores": [{"semaphore": 0, "value": 3}]},
    {"id": 5, "kind": "batch mem op"},
    {"id": 6, "kind": "mem free", "address": [2, 0]},
    {"id": 7, "kind": "conditional"},
    {"id": 8, "kind": "empty"},
    {"id": 9, "kind": "child graph"},
    {"id": 10, "kind": "memset", "device": 0, "body": 1, "destination": [3, 64], "value": 4294967295, "element_bytes": 2, "width": 5, "height": 3, "pitch": 16},
    {"id": 11, "kind": "mem alloc", "device": 0, "body": 1, "address": [4, 0], "bytes": 64},
    {"id": 12, "kind": "mem free", "device": 0, "body": 1, "address": [4, 0]}
  ],
  "edges": [
    {"from": 0, "to": 1},
    {"from": 1, "to": 2},
    {"from": 2, "to": 3},
    {"from": 8, "to": 7},
    {"from": 11, "to": 12}
  ],
  "allocations": [
    {"id": 0, "kind": "pinned host", "bytes": 64},
    {"id": 1, "kind": "device", "device": 0, "bytes": 1024},
    {"id": 2, "kind": "unknown"},
    {"id": 3, "kind": "managed", "bytes": 4096},
    {"id": 4, "kind": "device", "device": 0, "bytes": 64}
  ],
  "bodies": [
    {"id": 1, "owner": 9}
  ]
}
END

for graph in "$scratch/memory.cgrt.json" "$@"; do
  name=$(basename "$graph" .cgrt.json)
  if ! "$graphdump" emit "$graph" >"$scratch/$name.cu" || ! "$graphdump" emit - <"$graph" | cmp - "$scratch/$name.cu"; then
    echo "FAILED: $name: no program, or another one at the second call"
    failures=$((failures + 1))
    continue
  fi
  output=(-c -o "$scratch/$name.o")
  [ -z "${KEEP:-}" ] || output=(-L"$(dirname "$(command -v "$nvcc")")/../lib64/stubs" -lcuda -o "$KEEP/$name")
  if ! "$nvcc" -arch=sm_90 -Werror all-warnings "$scratch/$name.cu" "${output[@]}" >"$scratch/log" 2>&1; then
    echo "FAILED: $name: $nvcc says:"
    head -n 20 "$scratch/log"
    failures=$((failures + 1))
  fi
done
[ "$failures" = 0 ] && echo "all compile"
[ "$failures" = 0 ]
