#!/usr/bin/env bash
# tests/fuzz/run.sh SECONDS: builds the fuzzer of graph files with clang's sanitizers and runs it, from the graphs of
# tests/golden and tests/recording on. What crashes, hangs for 25 s or takes more than 2 GiB is an error.
set -euo pipefail
seconds=${1:?usage: tests/fuzz/run.sh SECONDS}
cd "$(dirname "$(readlink -f "$0")")/../.."
build=build/fuzz
mkdir -p "$build/corpus" "$build/objects"
cmake -DOUT="$build/page" -P cmake/embed_page.cmake
flags=(-std=c++20 -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -Iruntime -I$build
  -DSPDLOG_FMT_EXTERNAL -DFMT_HEADER_ONLY -Wno-everything)
sources=(runtime/cgrt/base/*.cpp runtime/cgrt/ir/*.cpp runtime/cgrt/inspect/*.cpp tests/fuzz/graph_file.cpp)
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} sh -c \
  'o='"$build"'/objects/$(echo "$1" | tr / _).o; [ "$o" -nt "$1" ] || clang++-16 '"${flags[*]}"' -c -o "$o" "$1"' - {}
mapfile -t absl < <(for name in status statusor strings str_format_internal cord raw_hash_set hash city low_level_hash \
  cord_internal cordz_info cordz_functions cordz_handle throw_delegate bad_variant_access strings_internal \
  strerror int128; do echo "-labsl_$name"; done)
clang++-16 -fsanitize=fuzzer,address,undefined -o "$build/graph_file" "$build"/objects/*.o "${absl[@]}"
find tests/golden tests/recording docs samples -name '*.cgrt.json' -size -64k -exec cp -t "$build/corpus" {} +
cp tests/golden/driver_*.dot "$build/corpus"
exec "$build/graph_file" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
  "$build/corpus"
