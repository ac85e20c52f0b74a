#!/usr/bin/env python3
"""Lists every public operation of the runtime that can fail, read from its headers, and fails when
one of them is not in the fault loop (tests/fault/*.cpp: FAULT("Class::operation", ...))."""
import pathlib
import re
import sys

# Rooms whose headers users call into with a device; driver/ and what is named internal are not.
ROOMS = ["device", "stream", "memory", "launch", "graph", "exec"]
INTERNAL = {"exec/explain_instantiate.h", "graph/graph_state.h", "graph/function_name.h", "stream/keep.h"}
# In stream/launch_target.h, the interface between targets; its classes are in the loop as Cursor.
INTERNAL_CLASSES = {"LaunchSink", "LaunchTarget"}


def operations(root):
    found = set()
    runtime = root / "runtime" / "cgrt"
    for room in ROOMS:
        for header in sorted((runtime / room).glob("*.h")):
            if str(header.relative_to(runtime)) in INTERNAL:
                continue
            scope = []  # (class name, brace depth)
            depth = 0
            text = re.sub(r"//.*", "", header.read_text())
            text = re.sub(r"\bfriend\b[^;]*;", "", text)
            for statement in re.finditer(r"(class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^{;]*)?\{|[{}]|absl::Status(?:Or<[^;{]*?>)?\s+(\w+)\(", text):
                if statement.group(2):
                    depth += 1
                    scope.append((statement.group(2), depth))
                elif statement.group(0) == "{":
                    depth += 1
                elif statement.group(0) == "}":
                    if scope and scope[-1][1] == depth:
                        scope.pop()
                    depth -= 1
                elif statement.group(3):
                    if not INTERNAL_CLASSES & {name for name, _ in scope}:
                        found.add("::".join([name for name, _ in scope] + [statement.group(3)]))
    return found


def main(root):
    listed = set()
    for source in (root / "tests" / "fault").glob("*.cpp"):
        listed |= set(re.findall(r'FAULT\("([\w:]+)"', source.read_text()))
    wanted = operations(root)
    # These turn one status into another; set_node_enabled is what set_enabled calls.
    wanted -= {"explain_launch", "explain", "GraphExec::set_node_enabled"}
    missing = sorted(wanted - listed)
    unknown = sorted(name for name in listed - wanted if not name.startswith("and::"))
    for name in missing:
        print(f"not in the fault loop: {name}")
    for name in unknown:
        print(f"in the fault loop but not in a header: {name}")
    print(f"{len(wanted)} public operations, {len(listed)} in the fault loop")
    return 1 if missing or unknown or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
