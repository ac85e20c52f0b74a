#!/usr/bin/env python3
"""Fails when a committed record is not of the record schema, or when a declaration has changed since its commit in what
it measures or in what that includes, wherever the declaration stands; and when what the pages have from records is not
what tools/fill_tables.py would write. Comments and includes are no code."""
import collections
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

for folder in ("kernels/bench", "tools"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / folder))
from fill_tables import DRAW, FIGURE, PAGES, PICTURE, TABLE, printed
from includes import included


# Records that are older than what they measure, or that lack cases, and until when: the one excuses not the other. One
# that is whole and current must go from here.
OLDER, LACKS = "has changed since", "could not be measured"
WAITING = {  # by file: what is wrong with it, and why
    "kernels/bench/records/sampling.json":
        ([LACKS], "torch.compile 2.11 cannot compile top-p alone: its two rows have PyTorch's"),
}
# Host code that runs before anything is timed: how a library's call gets into a graph. The list of the driver's
# functions, one more of which changes nothing for the others. What tests count and fail calls with.
UNTIMED = {f"kernels/cgrt_kernels/common/library.{end}" for end in ("cpp", "h")} | {
    "runtime/cgrt/driver/entry_points.def", "runtime/cgrt/driver/instrument.cpp"}
SOURCES = ("kernels", "runtime", "samples", "tools")
TREES = tempfile.TemporaryDirectory()

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r"^\s*#\s*(include|pragma once)\b.*$", re.M)
# Records are of devices of compute capability 9.0, which run no code for others.
ARCHITECTURE = re.compile(r"\s*#\s*if __CUDA_ARCH__ (>=|<) 900\s*$")
CONDITION, ELSE, END = (re.compile(r"\s*#\s*" + word + r"\b") for word in ("if(def|ndef)?", "else", "endif"))
# A plan loads its kernels before anything is timed.
PRELOAD = re.compile(r"(\b(if|for) \((?:[^{}()]|\([^{}()]*\))*\)\s+)?CGRT_RETURN_IF_ERROR\(preload\([^;{}]*\)\);")
WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|\w+|[^\w\s]')
NAMESPACE = re.compile(r"^(inline )?namespace( [\w :]+)?$")


def for_hopper(text):
    """Without the code of other architectures, and without what tells it apart."""
    kept, conditions = [], []  # whether what follows is kept; None: of a condition on something else
    for line in text.splitlines():
        if match := ARCHITECTURE.match(line):
            conditions.append(match[1] == ">=")
        elif CONDITION.match(line):
            kept += [line] * (False not in conditions)
            conditions.append(None)
        elif ELSE.match(line) and conditions[-1] is not None:
            conditions[-1] = not conditions[-1]
        elif END.match(line) and conditions.pop() is not None:
            continue
        elif False not in conditions:
            kept.append(line)
    return "\n".join(kept)


def declarations_of(name, text):
    """What of a file can change what is measured: the declarations of a C++ file, each as its words, without comments,
    includes and namespaces, so that it does not matter in which file they stand, and without what no record's device
    compiles or what comes before anything is timed; another file as a whole."""
    if name.endswith(".py"):
        return [" ".join(re.sub(r"^\s*#.*$", "", text, flags=re.M).split())]
    if not name.endswith((".h", ".cuh", ".cpp", ".cu")):
        return [" ".join(text.split())]
    text = PRELOAD.sub("", INCLUDE.sub("", for_hopper(text)))
    text = COMMENT_OR_TEXT.sub(lambda match: " " if match[0].startswith("/") else match[0], text)
    found, words, depth, namespaces = [], [], 0, 0
    for word in WORD.findall(text):
        if depth == 0 and word == "{" and NAMESPACE.match(" ".join(words)):
            words, namespaces = [], namespaces + 1
            continue
        if depth == 0 and word == "}" and not words and namespaces > 0:
            namespaces -= 1
            continue
        words.append(word)
        depth += {"{": 1, "}": -1}.get(word, 0)
        if depth == 0 and word in ";}":
            if words[:2] != ["using", "namespace"]:
                found.append(" ".join(words))
            words = []
    return found + [" ".join(words)] * bool(words)


def code_of(root, paths):
    """All declarations that a record at these paths measures, or includes, and how often each is there; the first
    path of each; and which paths are not there."""
    there = [path for path in paths if (root / path).exists()]
    files = [file for path in there for file in ((root / path).rglob("*.*") if (root / path).is_dir() else [root / path])]
    code, where = collections.Counter(), {}
    for file in sorted({*files, *(root / path for path in included(there, root))}):
        name = str(file.relative_to(root))
        if file.suffix == ".md" or name in UNTIMED or not file.is_file():
            continue
        for declaration in declarations_of(name, file.read_text(encoding="utf-8")):
            code[declaration] += 1
            where.setdefault(declaration, name)
    return code, where


@functools.lru_cache(maxsize=None)
def tree_of(root, commit):
    """A folder with the sources as they were at a commit."""
    folder = pathlib.Path(TREES.name) / commit
    folder.mkdir()
    archive = subprocess.run(["git", "-C", str(root), "archive", commit, *SOURCES], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def changed_places(root, record):
    """The files that have a declaration which was not there at the record's commit, or had one that is gone."""
    now, where_now = code_of(root, record["measures"])
    then, where_then = code_of(tree_of(root, record["commit"]), record["measures"])
    return sorted({where_now[declaration] for declaration in now - then} |
                  {where_then[declaration] for declaration in then - now})


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
    errors += [f"{name}: {path} has changed since {record['commit'][:12]}; record it again (tools/record)"
               for path in changed_places(root, record)]
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
        elif not (all(any(kind in error for kind in WAITING[name][0]) for error in wrong) and
                  all(any(kind in error for error in wrong) for kind in WAITING[name][0])):
            errors += [*wrong, f"{name}: waits for {' and '.join(WAITING[name][0])}"]
        else:
            waiting += 1
            print(f"{name}: {WAITING[name][1]}")
    errors += [f"{name}: waits and does not exist" for name in WAITING if not (root / name).exists()]
    for page in PAGES:
        errors += check_tables(root, page)
    errors += check_printed(PICTURE, DRAW, (root / PICTURE).read_text(encoding="utf-8"))
    print("\n".join(errors) if errors else f"{len(records) - waiting} records are current, {waiting} wait")
    return 1 if errors else 0


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
