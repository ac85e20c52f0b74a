#!/usr/bin/env python3
"""Writes the tables of README.md, docs/kernels.md and docs/seeds.md anew: each stands between <!-- table: COMMAND --> and
<!-- end --> and is what COMMAND prints. docs/kernels.svg is what kernels/bench/plot.py prints. A test fails when they differ."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def fill(match):
    made = subprocess.run(match.group(1).split(), cwd=ROOT, capture_output=True, text=True, check=True)
    return f"<!-- table: {match.group(1)} -->\n{made.stdout.strip()}\n<!-- end -->"


for page in (ROOT / "README.md", ROOT / "docs/kernels.md", ROOT / "docs/seeds.md"):
    page.write_text(re.sub(r"<!-- table: (.*?) -->\n.*?<!-- end -->", fill, page.read_text(), flags=re.S))
picture = subprocess.run([sys.executable, "kernels/bench/plot.py"], cwd=ROOT, capture_output=True, text=True, check=True)
(ROOT / "docs/kernels.svg").write_text(picture.stdout, encoding="utf-8")
