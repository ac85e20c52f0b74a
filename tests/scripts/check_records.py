#!/usr/bin/env python3
"""Fails when a committed record is not of the record schema, measures a path that does not exist, or one
that has changed since its commit, or whose kernels include a file that has; and when what the pages have
from records is not what tools/fill_tables.py would write."""
import json
import pathlib
import re
import subprocess
import sys

for folder in ("kernels/bench", "tools"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / folder))
from fill_tables import DRAW, PAGES, PICTURE, TABLE, printed
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
    errors += [f"{name}: could not be measured: {case}" for case in record.get("failed", [])]
    if not record["measures"]:
        errors.append(f"{name}: measures nothing")
    if git(root, "cat-file", "-e", record["commit"] + "^{commit}").returncode != 0:
        errors.append(f"{name}: its commit {record['commit'] or '(none)'} is not in this repository")
        return errors
    there = [path for path in record["measures"] if (root / path).exists()]
    errors += [f"{name}: measures {path}, which does not exist" for path in record["measures"] if path not in there]
    for path in there + included(there):
        if git(root, "diff", "--quiet", record["commit"], "--", path).returncode != 0:
            errors.append(f"{name}: {path} has changed since {record['commit'][:12]}; record it again (tools/record)")
    return errors


def check_printed(where, command, text):
    try:
        return [] if printed(command) == text.strip() else [f"{where}: is not what `{command}` prints (tools/fill_tables.py)"]
    except subprocess.CalledProcessError:
        return [f"{where}: `{command}` failed"]


def check_tables(root, page):
    tables = TABLE.findall((root / page).read_text(encoding="utf-8"))
    errors = [error for command, text in tables for error in check_printed(f"{page}: a table", command, text)]
    return errors if tables else [f"{page}: has no table made from a record"]


def main(root):
    records = sorted(p for p in root.glob("*/**/records/*.json") if "build" not in p.parts and not p.name.endswith(".cgrt.json"))
    errors = [] if records else ["no record is committed"]
    if git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        print("skipped: in a shallow clone the age of records cannot be checked")
        return 77
    for path in records:
        errors += check(root, path)
    for page in PAGES:
        errors += check_tables(root, page)
    errors += check_printed(PICTURE, DRAW, (root / PICTURE).read_text(encoding="utf-8"))
    print("\n".join(errors) if errors else f"{len(records)} records are current")
    return 1 if errors else 0


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
