#!/usr/bin/env bash
# test.sh BUILD_DIR SOURCE_DIR NVCC: installs the build into a fresh folder, builds the stranger's
# project against it, runs it, and reads its graph with the installed graphdump.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/installed" >"$work/install.log"
grep -rl "$(dirname "$(dirname "$2")")" "$work/installed/lib/cmake" && { echo "the package names the source tree"; exit 1; }
cmake -S "$2" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_CUDA_COMPILER="$3" \
  -DCMAKE_CUDA_ARCHITECTURES=90-real >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
cmake --build "$work/build" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
"$work/build/stranger" "$work/fill.cgrt.json"
"$work/build/reader" "$work/fill.cgrt.json" | grep -q "kernel  fill"
"$work/installed/bin/graphdump" show "$work/fill.cgrt.json"
