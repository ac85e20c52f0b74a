#!/usr/bin/env bash
# tests/fuzz/run.sh SECONDS [graph_file|bundle|bundle_load]: builds the fuzzer of graph files, of the reader of bundles or
# of their loader, with clang's sanitizers and runs it, from the graphs of tests/golden and tests/recording on, or the
# bundle of tests/golden. What crashes, hangs for 25 s or takes more than 2 GiB is an error.
set -euo pipefail
usage="usage: tests/fuzz/run.sh SECONDS [graph_file|bundle|bundle_load]"
seconds=${1:?$usage} target=${2:-graph_file}
cd "$(dirname "$(readlink -f "$0")")/../.."
build=build/fuzz
mkdir -p "$build/corpus_$target" "$build/objects"
cmake -DOUT="$build/page" -P cmake/embed_page.cmake
cuda=${CUDA_HOME:-/usr/local/cuda}
flags=(-std=c++20 -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -Iruntime -Itests -I$build
  -isystem "$cuda/include" -DSPDLOG_FMT_EXTERNAL -DFMT_HEADER_ONLY -Wno-everything)
sources=(runtime/cgrt/base/*.cpp runtime/cgrt/ir/*.cpp runtime/cgrt/inspect/*.cpp)
case $target in
graph_file)
  find tests/golden tests/recording docs samples -name '*.cgrt.json' -size -64k -exec cp -t "$build/corpus_$target" {} +
  cp tests/golden/driver_*.dot "$build/corpus_$target"
  ;;
bundle | bundle_load)
  sources+=(runtime/cgrt/saved/*.cpp)
  python3 tests/fuzz/bundle_seed.py tests/golden/step.bundle "$build/corpus_$target" \
    tests/golden/{chain,fork_join,nested,structures,conditional}.cgrt.json
  ;;
*)
  echo "$usage" >&2
  exit 2
  ;;
esac
libraries=()
if [ "$target" = bundle_load ]; then
  for module in driver device stream target memory launch graph exec bundle simulator; do
    sources+=(runtime/cgrt/$module/*.cpp)
  done
  "$cuda/bin/nvcc" -std=c++20 -arch=sm_90 -Iruntime -c -o "$build/patch.o" runtime/cgrt/exec/patch.cu
  libraries=("$build/patch.o" "-L$cuda/lib64" -lcudart_static -ldl -lrt -lpthread)
fi
sources+=("tests/fuzz/$target.cpp")
[ "$build/precompiled.pch" -nt cmake/precompiled.h ] ||
  clang++-16 "${flags[@]}" -x c++-header -o "$build/precompiled.pch" cmake/precompiled.h
object_of() { echo "$build/objects/$(echo "$1" | tr / _).o"; }
rm -f "$(object_of "tests/fuzz/$target.cpp")" # whose headers may be newer
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} sh -c \
  'o='"$build"'/objects/$(echo "$1" | tr / _).o; [ "$o" -nt "$1" ] || clang++-16 '"${flags[*]}"' -c -o "$o" "$1"' - {}
mapfile -t objects < <(for source in "${sources[@]}"; do object_of "$source"; done)
mapfile -t absl < <(for name in status statusor strings str_format_internal cord raw_hash_set hash city low_level_hash \
  cord_internal cordz_info cordz_functions cordz_handle throw_delegate bad_variant_access strings_internal \
  strerror int128 time; do echo "-labsl_$name"; done)
clang++-16 -fsanitize=fuzzer,address,undefined -o "$build/$target" "${objects[@]}" "${libraries[@]}" "${absl[@]}"
exec "$build/$target" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
  "$build/corpus_$target"
