#!/usr/bin/env python3
"""Fails when a committed record is not of the record schema, measures a path that does not exist or
that has changed since its commit (but for comments of C++), or, of kernels and samples with kernels,
leaves out what they include; and when what the pages have from records is not what
tools/fill_tables.py would write."""
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


LITERAL_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.S)


def code(text):
    """C++ without comments and layout."""
    return LITERAL_OR_COMMENT.sub(lambda found: " " if found[0][0] == "/" else found[0], text).split()


def has_changed(root, commit, path):
    """Whether code at this path has changed. Comments may become better without a new measurement."""
    for name in git(root, "diff", "--name-only", commit, "--", path).stdout.splitlines():
        old, file = git(root, "show", f"{commit}:{name}"), root / name
        is_cpp = file.suffix in (".h", ".cpp", ".cu", ".cuh")
        if not is_cpp or old.returncode != 0 or not file.exists() or code(old.stdout) != code(file.read_text()):
            return True
    return False


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
    for measured in record["measures"]:
        if not (root / measured).exists():
            errors.append(f"{name}: measures {measured}, which does not exist")
        elif has_changed(root, record["commit"], measured):
            errors.append(f"{name}: {measured} has changed since {record['commit'][:12]}; record it again (tools/record)")
    if record["program"] in ("kernelbench", "launch_overhead", "mlp_step"):
        errors += [f"{name}: does not measure {file}, which its kernels include" for file in
                   included(path for path in record["measures"] if (root / path).exists())]
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
