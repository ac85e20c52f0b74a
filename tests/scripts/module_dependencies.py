#!/usr/bin/env python3
"""Fails when an #include points against the dependencies between the modules of runtime/cgrt."""
import pathlib
import re
import sys

# Each module, and the modules that it may include besides itself; what these may include, it may too.
DEPENDENCIES = {
    "base": [],
    "ir": ["base"],
    "inspect": ["ir"],
    "record": ["base"],
    "driver": ["base"],
    "device": ["driver"],
    "stream": ["device"],
    "target": ["stream"],
    "memory": ["target"],
    "launch": ["target"],
    "graph": ["memory", "launch", "ir"],
    "exec": ["graph"],
    "dump": ["exec", "inspect"],
    "saved": ["inspect"],
    "bundle": ["exec", "saved"],
    "simulator": ["stream"],
}
PLAIN = ["driver/kernel_identity.h", "launch/kernel.h"]  # included by .cu files: no Abseil, no spdlog


def reachable(module):
    found, todo = set(), [module]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += DEPENDENCIES[one]
    return found


def main(root):
    runtime = root / "runtime" / "cgrt"
    errors = []
    files = [f for f in sorted(runtime.rglob("*")) if f.suffix in (".h", ".cpp", ".def") and f.parent != runtime]
    for file in files:
        module = file.relative_to(runtime).parts[0]
        if module not in DEPENDENCIES:
            errors.append(f"{file}: the module {module} has no dependencies in {__file__}")
            continue
        allowed = reachable(module)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
            if not include:
                continue
            name = include.group(1)
            where = f"{file.relative_to(root)}:{number}"
            if name.startswith("cgrt/") and name.count("/") > 1 and name.split("/")[1] not in allowed:
                errors.append(f"{where}: {module} must not include {name}")
            if name.startswith("cgrt_kernels/"):
                errors.append(f"{where}: the runtime must not include kernels")
            if module in ("base", "ir", "inspect", "record", "saved") and re.match(r"cuda|cuda\.h", name):
                errors.append(f"{where}: {module} knows no CUDA")
            if name.startswith("spdlog/") and file.name != "log.cpp":
                errors.append(f"{where}: spdlog belongs to base/log.cpp alone")
            if str(file.relative_to(runtime)) in PLAIN and name.startswith("absl/"):
                errors.append(f"{where}: this header is plain: no Abseil")
    for file in runtime.rglob("*.cpp"):
        module = file.relative_to(runtime).parts[0]
        if module not in ("driver", "simulator") and re.search(r"(?<![\w:.])cu[A-Z]\w*\s*\(", re.sub(r'"[^"]*"|//.*', "", file.read_text())):
            errors.append(f"{file.relative_to(root)}: only driver/ calls cu*")
    print("\n".join(errors) if errors else f"{len(files)} files follow the dependencies")
    return 1 if errors or not files else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
