#!/usr/bin/env python3
"""Lists every public operation of the runtime that can fail, read from its headers, and fails when
one of them is not in the list that the fault loop and the behaviour suite run
(tests/operations/operations.cpp: OPERATION("Class::operation", ...))."""
import pathlib
import re
import sys

import headers

# Modules whose headers users call into with a device; driver/, internal headers and namespace internal are not.
MODULES = ["device", "stream", "target", "memory", "launch", "graph", "exec"]
# In target/launch_target.h, the interface between targets; its classes are in the loop as Cursor.
INTERNAL = {"internal", "LaunchSink", "LaunchTarget"}


def operations(root):
    found = set()
    runtime = root / "runtime" / "cgrt"
    for module in MODULES:
        for header in sorted((runtime / module).glob("*.h")):
            if headers.is_internal(header):
                continue
            scope = []  # [name, brace depth, whether what follows is public]
            depth = 0
            text = re.sub(r"//.*", "", header.read_text())
            text = re.sub(r"\bfriend\b[^;]*;", "", text)
            for statement in re.finditer(r"(namespace|class|struct)\s+([\w:]+)(?:\s+final)?\s*(?::[^{;]*)?\{|[{}]|absl::Status(?:Or<[^;{]*?>)?\s+(\w+)\(|\b(public|protected|private):(?!:)", text):
                if statement.group(2):
                    depth += 1
                    scope.append([statement.group(2), depth, statement.group(1) != "class"])
                elif statement.group(4):
                    scope[-1][2] = statement.group(4) == "public"
                elif statement.group(0) == "{":
                    depth += 1
                elif statement.group(0) == "}":
                    if scope and scope[-1][1] == depth:
                        scope.pop()
                    depth -= 1
                elif statement.group(3):
                    names = [name for name, _, _ in scope if not name.startswith("cgrt")]
                    if not INTERNAL & set(names) and all(is_public for _, _, is_public in scope):
                        found.add("::".join(names + [statement.group(3)]))
    return found


def main(root):
    listed = set()
    for source in (root / "tests" / "operations").glob("*.cpp"):
        listed |= set(re.findall(r'OPERATION\("([\w:]+)"', source.read_text()))
    wanted = operations(root)
    wanted -= {"explain_launch", "explain"}  # turn one status into another
    missing = sorted(wanted - listed)
    unknown = sorted(name for name in listed - wanted if not name.startswith("and::"))
    for name in missing:
        print(f"not in tests/operations: {name}")
    for name in unknown:
        print(f"in tests/operations but not in a header: {name}")
    print(f"{len(wanted)} public operations, {len(listed)} in tests/operations")
    return 1 if missing or unknown or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
