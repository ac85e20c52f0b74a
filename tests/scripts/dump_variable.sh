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
# What makes the last one rebindable is a kernel of its graph.
difference=$("$2" diff "${files[0]}" "${files[2]}") && { echo "the rebindable graph has no patch kernel"; exit 1; }
echo "$difference"
[ "$(grep -c "^only in" <<<"$difference")" -eq 1 ] && grep -q '^only in .*: node 2 "cgrt::internal::patch_nodes<' <<<"$difference"
