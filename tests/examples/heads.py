#!/usr/bin/env python3
"""heads.py ROOT OUT: takes the examples out of the comments at the heads of the public headers.

Example 1 of cgrt/stream/stream.h becomes OUT/heads/cgrt/stream/stream.h.1.inc, code to include, and
OUT/heads/cgrt/stream/stream.h.1.txt, the same as a string literal. Fails when an example is included by no source
of the tests, and when a header has none that should."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "scripts"))
from headers import head_comment, is_internal

# Indented text that is no code and no output of code.
NOT_CODE = {
    "cgrt/dump/dump.h.1": "a shell's; the test dump_variable",
    "cgrt/graph/capture.h.2": "a drawing",
    "cgrt/inspect/dot.h.1": "a shell's; the test graphdump",
    "cgrt/ir/validate.h.2": "a list",
    "cgrt/saved/manifest.h.1": "a list of files",
    "cgrt_kernels/common/wgmma.cuh.1": "only sm_90a has these; as in gemm/hopper.cu",
    "cgrt_kernels/elementwise/map.cuh.2": "two declarations of what a functor may have",
    "cgrt_kernels/scan/stream.cuh.1": "a drawing",
}
# Headers of the runtime that need no example.
WITHOUT = {
    "cgrt/base/language.h": "the test consumer has its error",
    "cgrt/cgrt.h": "includes the others",
    "cgrt/driver/destroy.h": "see base/unique_handle.h",
    "cgrt/driver/kernel_identity.h": "made by make_kernel",
}
# Of the kernels, only what plans and launches needs one; and these say that they are for .cpp files of the families.
WITHOUT_THOUGH_IT_CAN_FAIL = {"cgrt_kernels/common/plan.h", "cgrt_kernels/common/row/plan.h"}


def examples(lines):
    """Pairs of the first line's number and the lines, without the indentation of three spaces."""
    found, begin = [], None
    for number, line in enumerate(lines + [""]):
        if line.startswith("   "):
            begin = number if begin is None else begin
        elif begin is not None:
            found.append((begin + 1, [part[3:] for part in lines[begin:number]]))
            begin = None
    return found


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main(root, out):
    sources = "".join(path.read_text() for path in sorted((root / "tests").glob("*/*.c*")))
    included = {name for name, _ in re.findall(r'#include "heads/(.+)\.(inc|txt)"', sources)}
    errors, made = [], set()
    for base in (root / "runtime", root / "kernels"):
        folder = base / ("cgrt" if base.name == "runtime" else "cgrt_kernels")
        for header in sorted(path for path in folder.rglob("*.*h") if path.suffix in (".h", ".cuh")):
            if is_internal(header):
                continue
            name = header.relative_to(base).as_posix()
            found = examples(head_comment(header))
            needs = name not in WITHOUT if base.name == "runtime" else (
                "absl::Status" in header.read_text() and name not in WITHOUT_THOUGH_IT_CAN_FAIL)
            if needs and not found:
                errors.append(f"{name}: there is no example at its head")
            for number, (line, text) in enumerate(found, 1):
                example = f"{name}.{number}"
                made.add(example)
                if example not in NOT_CODE and example not in included:
                    errors.append(f"{example}: no source in tests/ includes it")
                code = "\n".join(text)
                write(out / "heads" / f"{example}.inc", f'#line {line} "{header}"\n{code}\n')
                write(out / "heads" / f"{example}.txt", f'R"head({code}\n)head"\n')
    errors += [f"{name}: there is no such example" for name in sorted((included | NOT_CODE.keys()) - made)]
    print("\n".join(errors + [f"{len(included)} examples of {len(made)} pieces of indented text"]))
    return 1 if errors else 0


sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
