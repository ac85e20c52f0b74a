#!/usr/bin/env python3
"""Fails when a committed record is not of the record schema, measures a path that does not exist or
that has changed since its commit, or, of kernels, leaves out what they include; and when a table in README.md or
docs/kernels.md is not what the record gives."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "kernels" / "bench"))
from includes import included


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)


def check(root, path):
    name = path.relative_to(root)
    record = json.loads(path.read_text())
    errors = []
    for key in ("schema", "program", "command", "commit", "measures", "date", "device", "driver", "cuda", "simulated", "rows"):
        if key not in record:
            errors.append(f"{name}: has no \"{key}\"")
    if errors:
        return errors
    if record["schema"] != "cgrt-record-1" or record["simulated"] or not record["rows"]:
        errors.append(f"{name}: is not a record of a device")
    if not record["measures"]:
        errors.append(f"{name}: measures nothing")
    if git(root, "cat-file", "-e", record["commit"] + "^{commit}").returncode != 0:
        errors.append(f"{name}: its commit {record['commit'] or '(none)'} is not in this repository")
        return errors
    for measured in record["measures"]:
        if not (root / measured).exists():
            errors.append(f"{name}: measures {measured}, which does not exist")
        elif git(root, "diff", "--quiet", record["commit"], "--", measured).returncode != 0:
            errors.append(f"{name}: {measured} has changed since {record['commit'][:12]}; record it again (tools/record)")
    if record["program"] == "kernelbench":
        errors += [f"{name}: does not measure {file}, which its kernels include" for file in
                   included(path for path in record["measures"] if (root / path).exists())]
    return errors


def check_tables(root, page):
    """Each table stands between <!-- table: COMMAND --> and <!-- end -->."""
    tables = re.findall(r"<!-- table: (.*?) -->\n(.*?)<!-- end -->", (root / page).read_text(), re.S)
    errors = []
    for command, text in tables:
        made = subprocess.run(command.split(), cwd=root, capture_output=True, text=True)
        if made.returncode != 0:
            errors.append(f"{page}: `{command}` failed: {made.stderr.strip()}")
        elif made.stdout.strip() != text.strip():
            errors.append(f"{page}: its table is not what `{command}` prints")
    return errors if tables else [f"{page}: has no table made from a record"]


def check_picture(root):
    drawn = subprocess.run([sys.executable, "kernels/bench/plot.py"], cwd=root, capture_output=True, text=True).stdout
    if drawn == (root / "docs/kernels.svg").read_text(encoding="utf-8"):
        return []
    return ["docs/kernels.svg: is not what kernels/bench/plot.py draws (tools/fill_tables.py)"]


def main(root):
    records = sorted(p for p in root.glob("*/**/records/*.json") if "build" not in p.parts and not p.name.endswith(".cgrt.json"))
    errors = [] if records else ["no record is committed"]
    if git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        print("skipped: in a shallow clone the age of records cannot be checked")
        return 77
    for path in records:
        errors += check(root, path)
    for page in ("README.md", "docs/kernels.md", "docs/seeds.md"):
        errors += check_tables(root, page)
    errors += check_picture(root)
    print("\n".join(errors) if errors else f"{len(records)} records are current")
    return 1 if errors else 0


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
