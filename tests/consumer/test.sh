#!/usr/bin/env bash
# test.sh BUILD_DIR SOURCE_DIR NVCC: installs the build into a fresh folder and uses it as strangers do: all of it,
# as the README and pages say, by pkg-config, without CUDA, and from projects that are pinned to C++17.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; return 1; }; }
configure() {  # SOURCE BUILD [OPTION...]
  cmake -S "$1" -B "$work/$2" -G Ninja -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_CUDA_COMPILER="$nvcc" \
    -DCMAKE_CUDA_ARCHITECTURES=90-real "${@:3}"
}
source=$2 nvcc=$3
quietly cmake --install "$1" --prefix "$work/installed"
grep -rl "$(dirname "$(dirname "$source")")" "$work/installed/lib/cmake" "$work/installed/lib/pkgconfig" &&
  { echo "the package names the source tree"; exit 1; }

echo "== all of it"
quietly configure "$source" all
quietly cmake --build "$work/all"
"$work/all/stranger" "$work/fill.cgrt.json"
"$work/installed/bin/graphdump" show "$work/fill.cgrt.json"

echo "== the README's program, with the README's CMakeLists.txt"
readme=$source/../../README.md
mkdir "$work/readme"
awk '/^```$/ {inside = 0} inside; /^```cmake$/ {inside = 1}' "$readme" >"$work/readme/CMakeLists.txt"
awk '/^```$/ {inside = 0} inside; /^```cpp$/ {inside = 1}' "$readme" >"$work/readme/main.cpp"
quietly configure "$work/readme" app
quietly cmake --build "$work/app"
said=$("$work/app/app" | grep "^softmax")
grep -qF "# $said " "$readme" || { echo "the README does not say: $said"; exit 1; }

echo "== the functions on pages, behind the README's program"
pages=("$source/../../docs/performance.md" "$source/../../docs/bundles.md")
awk '/^```$/ {inside = 0} inside; /^```cpp$/ {inside = 1}' "${pages[@]}" >>"$work/readme/main.cpp"
for name in softmax_all print_tokens load_another; do
  grep -q "$name(" "${pages[@]}" || { echo "no page has $name"; exit 1; }
done
echo "target_link_libraries(app PRIVATE cgrt::bundle)" >>"$work/readme/CMakeLists.txt"
quietly cmake --build "$work/app"

echo "== graphs as data, where there is no CUDA toolkit"
quietly configure "$source/data_only" data "-DCOMPONENTS=inspect;record" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
quietly cmake --build "$work/data"
"$work/data/reader" "$work/fill.cgrt.json" | grep -q "kernel  fill"

echo "== a component that there is none of"
configure "$source/data_only" unknown "-DCOMPONENTS=inspect;inspekt" >"$work/log" 2>&1 && { echo "taken"; exit 1; }
grep -q 'cgrt has no component "inspekt"' "$work/log"

echo "== another minor version"
for version in 0.1 0.3 1.0; do
  configure "$source/data_only" "version$version" -DCOMPONENTS=inspect -DVERSION=$version >"$work/log" 2>&1 && { echo "taken"; exit 1; }
  grep -q "requested version" "$work/log"
done

echo "== a component that there is none of, optional"
quietly configure "$source/data_only" optional "-DCOMPONENTS=inspect;OPTIONAL_COMPONENTS;inspekt"

echo "== projects pinned to C++17: the host's language level is raised, nvcc's where CMake can"
quietly configure "$source/seventeen" seventeen
quietly cmake --build "$work/seventeen" --target host
"$work/seventeen/host"
if cmake --build "$work/seventeen" --target device >"$work/log" 2>&1; then
  cmake --build "$work/seventeen" --target device -- -t commands | grep -q "std=c++20"
else
  grep -q "cgrt needs C++20.*CMAKE_CUDA_STANDARD 20" "$work/log" || { cat "$work/log"; exit 1; }
fi

echo "== pkg-config"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$work/installed/lib/pkgconfig
  # shellcheck disable=SC2046
  quietly g++ "$source/pkg_config.cpp" $(pkg-config --cflags --libs cgrt) -o "$work/by_pkg_config"
  "$work/by_pkg_config"
else
  echo "not run: there is no pkg-config"
fi
