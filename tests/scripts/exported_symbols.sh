#!/usr/bin/env bash
# exported_symbols.sh OBJECT.so: fails when a shared object that links cgrt statically exports what is cgrt's: two
# such objects in a process would share halves of both. What the compiler puts into the object for inline functions of
# headers (weak symbols) is the same in each; one symbol is shared on purpose (driver/live_capture.h).
set -euo pipefail
exported=$(nm -D --defined-only "$1" | c++filt)
grep -q " record_and_ask$" <<<"$exported" || { echo "$1 exports nothing of its own: not what this test is about"; exit 1; }
wrong=$(grep -E " [TDBR] .*\bcgrt::" <<<"$exported" || true)
shared=$(grep -E " [uV] .*\bcgrt::" <<<"$exported" | grep -v "cgrt_capturing_threads" || true)
if [ -n "$wrong$shared" ]; then
  printf 'exported by %s:\n%s\n%s\n' "$1" "$wrong" "$shared" | head -40
  exit 1
fi
echo "$(grep -c "cgrt::" <<<"$exported") symbols of cgrt's are visible, all of inline functions"
