#!/usr/bin/env python3
"""resources.py [LAUNCHER] COMPILER ARGUMENTS...: compiles as told and writes what each kernel takes beside the object.
resources.py --check BUILD_DIR: fails when kernels of the build take other than resources.txt says.
resources.py --write BUILD_DIR: writes resources.txt anew.

A kernel's registers, bytes of static shared memory and bytes spilled, for each architecture of the build, as
ptxas says. Another version of the compiler gives other numbers: the check then exits with 77, "skipped".
"""
import pathlib
import re
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("resources.txt")
ENTRY = re.compile(r"Compiling entry function '(\S+)' for 'sm_(\d+a?)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def compile_object(command):
    first = next(i for i, word in enumerate(command) if word.startswith("-"))  # before it the compiler, and what starts it
    done = subprocess.run([*command[:first], "-Xptxas=-v", *command[first:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found, other, kernel, spilled = [], [], None, 0
    for line in done.stderr.splitlines():
        if not line.startswith(("ptxas info", "    ")) or "error" in line:
            other.append(line)
        elif match := ENTRY.search(line):
            kernel = match.groups()
        elif match := SPILLS.search(line):
            spilled = int(match[1]) + int(match[2])
        elif (match := USED.search(line)) and kernel:
            found.append(f"{kernel[1]} {match[1]} {match[2] or 0} {spilled} {kernel[0]}")
            kernel, spilled = None, 0
    if done.returncode == 0 and "-o" in command:
        lines = [version_of(command[first - 1])] + found
        pathlib.Path(command[command.index("-o") + 1] + ".resources").write_text("\n".join(lines) + "\n")
    sys.stdout.write(done.stdout)
    sys.stderr.write("".join(line + "\n" for line in other))
    return done.returncode


def version_of(compiler):
    said = subprocess.run([compiler, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"V(\d+\.\d+\.\d+)", said)[1]


def of_build(build):
    """The version of nvcc, {"sm_90 kernel": "registers shared spilled"}"""
    folder = build / "kernels/CMakeFiles"
    source_of = lambda file: TABLE.parent.joinpath(*file.relative_to(folder).parts[1:]).with_suffix("").with_suffix("")
    files = [file.read_text().splitlines() for file in sorted(folder.glob("**/*.resources")) if source_of(file).exists()]
    rows = [line.split(" ") for lines in files for line in lines[1:]]
    if not rows:
        sys.exit(f"{build}: no kernel was compiled there")
    names = subprocess.run(["c++filt"], input="\n".join(row[4] for row in rows), check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    short = lambda name: re.sub(r"\(anonymous namespace\)::|cgrt::kernels::|\(cgrt::kernels::\w+(?:<[^()<>]*>)?\)|^void ", "",
                                re.sub(r"\((?!anonymous|cgrt)[^()]*\)$", "", name)).strip()
    return files[0][0], {f"sm_{row[0]} {short(name)}": " ".join(row[1:4]) for row, name in zip(rows, names)}


def of_table():
    lines = TABLE.read_text().splitlines()
    return lines[0].split()[-1], {line.split(maxsplit=3)[3]: " ".join(line.split(maxsplit=3)[:3])
                                  for line in lines if not line.startswith("#")}


def check(build):
    known, table = of_table()
    version, found = of_build(build)
    if version != known:
        print(f"skipped: nvcc is {version}, the table is of {known}")
        return 77
    built = {key.split()[0] for key in found}
    expected = {key: value for key, value in table.items() if key.split()[0] in built}
    wrong = 0
    for key in sorted(found.keys() | expected.keys()):
        if found.get(key) == expected.get(key):
            continue
        wrong += 1
        print(f"{key}: the build has {found.get(key, 'no such kernel')}, the table {expected.get(key, 'no such kernel')}")
    print(f"{len(found)} kernels, {wrong} differ" + ("; kernels/resources.py --write BUILD_DIR writes the table anew" if wrong else ""))
    return 1 if wrong else 0


def write(build):
    version, found = of_build(build)
    lines = [f"# registers, bytes of shared memory, bytes spilled, architecture and kernel, by nvcc {version}"]
    lines += [f"{value} {key}" for key, value in sorted(found.items())]
    TABLE.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] in ("--check", "--write"):
        sys.exit({"--check": check, "--write": write}[sys.argv[1]](pathlib.Path(sys.argv[2])))
    sys.exit(compile_object(sys.argv[1:]))
