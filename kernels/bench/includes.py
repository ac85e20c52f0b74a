"""Which files of other kernels a family's figures depend on."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def included(paths, root=ROOT):
    """The files of kernels/cgrt_kernels that sources at these paths below `root` include, directly or not, and that
    lie at none of them. A header of common brings the .cpp that is named like it."""
    given = [root / path for path in paths]
    todo = [file for path in given for file in (path.rglob("*.*") if path.is_dir() else [path])]
    found = set()
    while todo:
        for name in re.findall(r'^#include "(cgrt_kernels/.*)"', todo.pop().read_text(encoding="utf-8"), re.M):
            files = [root / "kernels" / name]
            if files[0].parent.name == "common" and files[0].with_suffix(".cpp").exists():
                files.append(files[0].with_suffix(".cpp"))
            new = [f for f in files if f not in found and not any(f.is_relative_to(path) for path in given)]
            found.update(new)
            todo += new
    return sorted(str(file.relative_to(root)) for file in found)
