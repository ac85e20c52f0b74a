#!/usr/bin/env python3
"""Writes what the pages have from records anew: tables, each between <!-- table: COMMAND --> and <!-- end --> and what
COMMAND prints, and the picture. The test of records fails when they differ."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/kernels.md", "docs/performance.md", "docs/published.md")
TABLE = re.compile(r"<!-- table: (.*?) -->\n(.*?)<!-- end -->", re.S)
PICTURE, DRAW = "docs/kernels.svg", "python3 kernels/bench/plot.py"


def printed(command):
    return subprocess.run(command.split(), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def fill(match):
    return f"<!-- table: {match[1]} -->\n{printed(match[1])}\n<!-- end -->"


def main():
    for page in PAGES:
        path = ROOT / page
        path.write_text(TABLE.sub(fill, path.read_text(encoding="utf-8")), encoding="utf-8")
    (ROOT / PICTURE).write_text(printed(DRAW) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:  # the command has said why
        sys.exit(str(error))
