#!/usr/bin/env bash
# spelling.sh ROOT: fails on what codespell knows as a misspelled word. .codespellrc lists the words that are none, and
# the files that are not written by hand. Exit 77 (skipped) without codespell or without a git checkout.
set -euo pipefail
cd "${1:?usage: spelling.sh ROOT}"
command -v codespell >/dev/null || { echo "skipped: there is no codespell (package codespell)"; exit 77; }
listed=$(git ls-files) || { echo "skipped: $PWD is not a git checkout"; exit 77; }
mapfile -t files <<<"$listed"
codespell "${files[@]}"
echo "${#files[@]} files looked at"
