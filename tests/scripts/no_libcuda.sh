#!/usr/bin/env bash
# Fails when a program or library of the build needs libcuda: they must start without a driver.
set -u
found=0
bad=0
while IFS= read -r file; do
  needed=$(readelf -d "$file" 2>/dev/null | grep NEEDED) || continue
  found=$((found + 1))
  if grep -q 'libcuda\.so' <<<"$needed"; then
    echo "$file needs libcuda"
    bad=1
  fi
done < <(find "$1" -type f -perm -u+x -not -path '*/CMakeFiles/*')
[ "$found" -gt 0 ] || { echo "no binaries in $1"; exit 1; }
echo "$found binaries looked at"
exit $bad
