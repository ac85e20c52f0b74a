#!/usr/bin/env python3
"""Fails when a committed record is not of the record schema, measures a path that does not exist, or one whose code
has changed since its commit, or that includes a file whose code has; and when what the pages have from records is not
what tools/fill_tables.py would write. Comments and includes are no code."""
import json
import pathlib
import re
import subprocess
import sys

for folder in ("kernels/bench", "tools"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / folder))
from fill_tables import DRAW, FIGURE, PAGES, PICTURE, TABLE, printed
from includes import included


# Records that are older than what they measure, and until when. One that is current again must go from here.
_OLD = "to be renewed: older than its kernels, and than torch.compile as a baseline"
WAITING = {f"kernels/bench/records/{family}.json": _OLD for family in (
    "elementwise", "latency", "scan")}
WAITING["kernels/bench/records/reduce.json"] = ("to be renewed: common/async_copy.cuh has a function more, which no reduction "
                                               "calls")
for _family in ("norm", "softmax", "lengths"):
    WAITING[f"kernels/bench/records/{_family}.json"] = ("to be renewed: unaligned floats are in streams again where they had "
                                                        "become slower, many short rows of bfloat16 in registers")
WAITING["kernels/bench/records/published.json"] = "to be renewed: long rows, and many short ones, of softmax are shared otherwise"
WAITING["samples/launch_overhead/records/h200.json"] = "to be renewed: elementwise's path of shifted arrays is another"
WAITING["samples/mlp_step/records/h200.json"] = ("to be renewed: norm and elementwise have changed")
WAITING["tools/graphbench/records/h200.json"] = ("to be renewed: files of the runtime moved; the run at 21b7539 had graph_launch "
                                                "of 1,000 and 10,000 nodes outside its limits, and was not kept")
IS_OLDER = re.compile(r"has changed since|measures .*, which does not exist")

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r"^\s*#\s*include\b.*$", re.M)


def code_of(name, text):
    """What of a file can change what is measured, as a list of words."""
    if name.endswith(".py"):
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    else:
        text = COMMENT_OR_TEXT.sub(lambda match: match[0] if match[0].startswith('"') else " ", INCLUDE.sub("", text))
    return text.split()


def has_changed(root, commit, path):
    """Whether the code of a file, or of a file below a folder, is another than at that commit."""
    changed = git(root, "diff", "--name-only", "-z", commit, "--", path).stdout.split("\0")
    for name in filter(None, changed):
        then, now = git(root, "show", f"{commit}:{name}"), root / name
        if then.returncode != 0 or not now.exists() or code_of(name, then.stdout) != code_of(name, now.read_text()):
            return True
    return False


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
    if re.search(r"(^|\s)/", record["command"]):
        errors.append(f"{name}: its command names a folder of the machine that it was measured on")
    errors += [f"{name}: could not be measured: {case}" for case in record.get("failed", [])]
    if not record["measures"]:
        errors.append(f"{name}: measures nothing")
    if git(root, "cat-file", "-e", record["commit"] + "^{commit}").returncode != 0:
        errors.append(f"{name}: its commit {record['commit'] or '(none)'} is not in this repository")
        return errors
    there = [path for path in record["measures"] if (root / path).exists()]
    errors += [f"{name}: measures {path}, which does not exist" for path in record["measures"] if path not in there]
    for path in there + included(there):
        if has_changed(root, record["commit"], path):
            errors.append(f"{name}: {path} has changed since {record['commit'][:12]}; record it again (tools/record)")
    return errors


def check_printed(where, command, text):
    try:
        return [] if printed(command) == text.strip() else [f"{where}: is not what `{command}` prints (tools/fill_tables.py)"]
    except subprocess.CalledProcessError:
        return [f"{where}: `{command}` failed"]


def check_tables(root, page):
    page_text = (root / page).read_text(encoding="utf-8")
    tables, figures = TABLE.findall(page_text), FIGURE.findall(page_text)
    errors = [error for command, text in tables for error in check_printed(f"{page}: a table", command, text)]
    errors += [error for command, text in figures for error in check_printed(f"{page}: a figure", command, text)]
    return errors if tables else [f"{page}: has no table made from a record"]


def main(root):
    records = sorted(p for p in root.glob("*/**/records/*.json") if "build" not in p.parts and not p.name.endswith(".cgrt.json"))
    errors = [] if records else ["no record is committed"]
    if git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        print("skipped: in a shallow clone the age of records cannot be checked")
        return 77
    waiting = 0
    for path in records:
        wrong = check(root, path)
        name = str(path.relative_to(root))
        if name not in WAITING:
            errors += wrong
        elif not wrong:
            errors.append(f"{name}: is current; take it out of WAITING in {pathlib.Path(__file__).name}")
        elif not all(IS_OLDER.search(error) for error in wrong):
            errors += wrong
        else:
            waiting += 1
            print(f"{name}: {WAITING[name]}")
    errors += [f"{name}: waits and does not exist" for name in WAITING if not (root / name).exists()]
    for page in PAGES:
        errors += check_tables(root, page)
    errors += check_printed(PICTURE, DRAW, (root / PICTURE).read_text(encoding="utf-8"))
    print("\n".join(errors) if errors else f"{len(records) - waiting} records are current, {waiting} wait")
    return 1 if errors else 0


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
