#!/usr/bin/env bash
# format.sh ROOT [FILE...]: fails when a C++ or CUDA source is not as clang-format 14 writes it with
# the committed .clang-format. Without FILEs: all that git tracks. Exit 77 (skipped) when there is no
# clang-format 14 or no git checkout: another version would write other lines.
set -euo pipefail
cd "${1:?usage: format.sh ROOT [FILE...]}"
shift

clang_format=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$clang_format" ] || ! "$clang_format" --version | grep -q 'version 14\.'; then
  echo "skipped: there is no clang-format 14 (package clang-format-14)"
  exit 77
fi
if [ $# -gt 0 ]; then
  files=("$@")
else
  listed=$(git ls-files -- '*.h' '*.cuh' '*.cpp' '*.cu') || { echo "skipped: $PWD is not a git checkout"; exit 77; }
  mapfile -t files <<<"$listed"
fi

bad=0
checked=()
for file in "${files[@]}"; do
  case "$file" in *.h | *.cuh | *.cpp | *.cu) ;; *) continue ;; esac
  [ -e "$file" ] || continue
  checked+=("$file")
done
if [ ${#checked[@]} -gt 0 ] && ! "$clang_format" --dry-run -Werror "${checked[@]}" 2>/dev/null; then
  for file in "${checked[@]}"; do
    "$clang_format" --dry-run -Werror "$file" 2>/dev/null || echo "$file is not formatted: run clang-format-14 -i $file"
  done
  bad=1
fi
echo "${#checked[@]} files looked at"
exit $bad
