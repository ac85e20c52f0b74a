#!/usr/bin/env bash
# same_as_device.sh LAUNCH_OVERHEAD GRAPHDUMP RECORDS: the graphs that the sample builds here are those that it built on
# a device, whose files lie in the folder RECORDS.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" --quick --graphs "$work" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
for mode in captured explicit; do "$2" diff "$work/chain-$mode.cgrt.json" "$3/chain-$mode.cgrt.json"; done
