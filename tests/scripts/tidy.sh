#!/usr/bin/env bash
# tidy.sh ROOT BUILD_DIR [FILE...]: fails on what clang-tidy 14 finds with the committed .clang-tidy. Without FILEs: the
# runtime without the simulator, five seconds of a processor each. BUILD_DIR: built, without unity builds, for its
# compile_commands.json and the files that it generates.
set -euo pipefail
cd "${1:?usage: tidy.sh ROOT BUILD_DIR [FILE...]}"
build=${2:?usage: tidy.sh ROOT BUILD_DIR [FILE...]}
shift 2
[ -e "$build/compile_commands.json" ] || {
  echo "There is no $build/compile_commands.json: cmake --preset release && tools/build release graphdump" >&2
  exit 1
}
files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  for file in runtime/cgrt/*/*.cpp; do
    [[ $file == */simulator/* ]] || files+=("$file")
  done
fi
# Standard error says how many warnings are left out, those of other people's headers.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy-14 -quiet -p "$build" --warnings-as-errors='*' \
  --extra-arg=-Wno-unknown-warning-option 2>/dev/null || { echo "clang-tidy found something" >&2; exit 1; }
echo "${#files[@]} files looked at"
