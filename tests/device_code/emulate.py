#!/usr/bin/env python3
"""emulate.py SOURCE DIR: device code as C++ for the CPU (emulated.h), one file for each of SOURCE's below DIR.

What the language of CUDA has and C++ has not becomes a call or a variable: inline PTX `emulated::ptx_NAME(operands)`,
shared memory static variables and a pointer, `make_kernel` a kernel whose host body is its device code.
"""
import pathlib
import re
import sys

ASM = re.compile(r"\basm\s*(?:volatile\s*)?\(")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
DYNAMIC = re.compile(r"extern __shared__\s*(?:__align__\(\d+\))?\s*([\w ]+?)\s+(\w+)\[\];")


def end_of_text(code, at):
    """Behind the text that begins at a quotation mark."""
    return TEXT.match(code, at).end()


def end_of_group(code, at):
    """Behind the parenthesis that closes the one at `at`."""
    depth = 0
    while True:
        if code[at] == '"':
            at = end_of_text(code, at)
            continue
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
        if depth == 0:
            return at


def sections(code):
    """What lies between the colons of an asm statement."""
    parts, begin, at = [], 0, 0
    while at < len(code):
        if code[at] == '"':
            at = end_of_text(code, at)
        elif code[at] == "(":
            at = end_of_group(code, at)
        else:
            if code[at] == ":":
                parts.append(code[begin:at])
                begin = at + 1
            at += 1
    return parts + [code[begin:]]


def operands(section):
    """Of an output or input section: the expressions in parentheses."""
    found, at = [], 0
    while (begin := section.find("(", at)) >= 0:
        at = end_of_group(section, begin)
        found.append(section[begin + 1:at - 1])
    return found


def call_of(statement):
    """The call in place of what stands in the parentheses of an asm statement."""
    text, *rest = sections(re.sub(r"#(if|else|endif)[^\n]*", "", statement))
    ptx = " ".join(TEXT.findall(text)).replace("\\n", " ")
    if not ptx.strip():
        return "static_cast<void>(0)"  # it keeps the compiler from something
    if "mbarrier" in ptx and "wait" in ptx:
        name = "mbarrier_wait"
    else:
        name = next(word for word in re.findall(r"[a-z][\w.:]*", ptx) if "." in word)
    values = [value for section in rest[:2] for value in operands(section)]
    return f"::emulated::ptx_{re.sub(r'[^a-zA-Z0-9]+', '_', name)}({', '.join(values)})"


def emulated(code):
    code = re.sub(r"//[^\n]*", "", code)
    parts, at = [], 0
    while found := ASM.search(code, at):
        end = end_of_group(code, found.end() - 1)
        parts += [code[at:found.start()], call_of(code[found.end():end - 1])]
        at = end
    code = "".join(parts) + code[at:]
    code = DYNAMIC.sub(r"\1* const \2 = reinterpret_cast<\1*>(::emulated::dynamic_shared());", code)
    code = code.replace("__shared__", "static").replace("__CUDA_ARCH__", "CGRT_EMULATED_ARCH")
    return re.sub(r"\bmake_kernel<", "::emulated::kernel<", code)


def main(source, folder):
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cuh", ".cu"):
            continue
        place = folder / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        code = emulated(path.read_text(encoding="utf-8"))
        place = place.with_suffix(".cu.cpp") if path.suffix == ".cu" else place
        if not place.exists() or place.read_text(encoding="utf-8") != code:
            place.write_text(code, encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
