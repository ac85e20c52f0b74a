#!/usr/bin/env bash
# dump_variable.sh PROGRAM GRAPHDUMP: a program that never mentions dumping writes every graph that it
# instantiates when CGRT_DUMP_DIR is set, and none when it is not.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/dump"
(cd "$work" && CGRT_DUMP_DIR="$work/dump" "$1" >/dev/null && "$1" >/dev/null)
files=("$work"/dump/*.cgrt.json)
# Captured, explicit and rebindable.
[ "${#files[@]}" -eq 3 ] || { echo "3 graphs were instantiated, ${#files[@]} written"; exit 1; }
for file in "${files[@]}"; do "$2" show "$file"; done
"$2" diff "${files[0]}" "${files[1]}"
# The rebindable one has its patch node more.
"$2" show "${files[2]}" | grep -q "rebinding" || { echo "no patch node in ${files[2]}"; exit 1; }
