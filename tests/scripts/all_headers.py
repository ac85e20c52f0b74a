#!/usr/bin/env python3
"""all_headers.py ROOT: fails when a header of the runtime is neither reached from cgrt/cgrt.h nor left out below."""
import pathlib
import re
import sys

from headers import is_internal

# Left out, beside those that say that they are internal, and why.
MEASURING = "for programs that measure and write records"
BUNDLE = "a library of its own, cgrt::bundle, which not every program links"
SAVED = "a library of its own, cgrt::saved, which not every program links"
LEFT_OUT = {
    "base/json_writer.h": MEASURING,
    "base/log.h": "the implementation's own; an application registers a logger",
    "base/text_file.h": MEASURING,
    "bundle/buffer_mark.h": BUNDLE,
    "bundle/bundle.h": BUNDLE,
    "bundle/save.h": BUNDLE,
    "driver/api.h": "the table of driver calls, cgrt's own door; programs have CUDA's",
    "driver/instrument.h": "for tests and for looking into a program: counts, traces or fails driver calls",
    "record/origin.h": MEASURING,
    "record/record.h": MEASURING,
    "record/statistics.h": MEASURING,
    "saved/folder.h": SAVED,
    "saved/hash.h": SAVED,
    "saved/manifest.h": SAVED,
    "saved/movable.h": SAVED,
    "saved/text.h": SAVED,
    "simulator/simulator.h": "a library of its own, cgrt::simulator, which not every program links",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]cgrt/([^">]+)[">]', re.M)


def main(root):
    runtime = root / "runtime" / "cgrt"
    reached, todo = set(), ["cgrt.h"]
    while todo:
        header = todo.pop()
        if header not in reached:
            reached.add(header)
            todo += INCLUDE.findall((runtime / header).read_text())
    headers = {str(path.relative_to(runtime)) for path in runtime.rglob("*.h") if not is_internal(path)}
    errors = [f"{header}: include it in cgrt/cgrt.h, or say in {pathlib.Path(__file__).name} why not"
              for header in sorted(headers - reached - LEFT_OUT.keys())]
    errors += [f"{header}: is left out and yet reached from cgrt/cgrt.h" for header in sorted(reached & LEFT_OUT.keys())]
    errors += [f"{header}: is left out and does not exist" for header in sorted(LEFT_OUT.keys() - headers)]
    print("\n".join(errors + [f"{len(headers)} headers, {len(headers & reached)} reached from cgrt/cgrt.h"]))
    return 1 if errors or not headers else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
