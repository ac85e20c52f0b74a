#!/usr/bin/env python3
"""Writes what the pages have from records anew: tables and single figures, each what COMMAND prints, between
<!-- table: COMMAND --> or <!-- figure: COMMAND --> and <!-- end -->, and the picture. The test of records fails when
they differ."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/kernels.md", "docs/kernels_tables.md", "docs/performance.md", "docs/published.md",
         "docs/gemm_ladder.md")
TABLE = re.compile(r"<!-- table: (.*?) -->\n(.*?)<!-- end -->", re.S)
FIGURE = re.compile(r"<!-- figure: (.*?) -->(.*?)<!-- end -->")  # in a line
PICTURE, DRAW = "docs/kernels.svg", "python3 kernels/bench/plot.py"


def printed(command):
    return subprocess.run(command.split(), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def fill(match):
    return f"<!-- table: {match[1]} -->\n{printed(match[1])}\n<!-- end -->"


def fill_figure(match):
    return f"<!-- figure: {match[1]} -->{printed(match[1])}<!-- end -->"


def main():
    for page in PAGES:
        path = ROOT / page
        text = TABLE.sub(fill, path.read_text(encoding="utf-8"))
        path.write_text(FIGURE.sub(fill_figure, text), encoding="utf-8")
    (ROOT / PICTURE).write_text(printed(DRAW) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:  # the command has said why
        sys.exit(str(error))
