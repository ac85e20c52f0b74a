#!/usr/bin/env bash
# commit_subjects.sh ROOT: fails when the subject of a commit is longer than 72 characters, or empty. Looks at those after
# the one named here. Exit 77 (skipped) where that one is not among the ancestors: in a shallow clone, or outside of git.
set -euo pipefail
cd "${1:?usage: commit_subjects.sh ROOT}"
base=65ce732
git merge-base --is-ancestor "$base" HEAD 2>/dev/null || { echo "skipped: $base is not among the commits here"; exit 77; }
git log --no-merges --format='%h %s' "$base..HEAD" | awk '
  { subject = substr($0, length($1) + 2); ++count }
  subject == "" { print $1 ": no subject"; bad = 1 }
  length(subject) > 72 { print $1 ": " length(subject) " characters, 72 at most: " subject; bad = 1 }
  END { print count + 0 " subjects looked at"; exit bad }'
