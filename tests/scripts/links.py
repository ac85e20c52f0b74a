#!/usr/bin/env python3
"""links.py ROOT: fails when a page (*.md) links to a file that is not there, or to a heading that the page it names does
not have. Links to other sites are not followed."""
import functools
import pathlib
import re
import sys
import urllib.parse

FENCED = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
# [text](target), ![text](target "title"), [name]: target, <a href="target">, <img src="target">
LINK = re.compile(r'\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|^\[[^\]]+\]:\s*(\S+)|<(?:a|img)\b[^>]*?\b(?:href|src)="([^"]+)"', re.M)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.M)
NAMED = re.compile(r'<a\b[^>]*?\b(?:id|name)="([^"]+)"')


def without_code(text, inline=True):
    """The text with as many lines and without what stands in code."""
    text = FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)
    return CODE.sub("", text) if inline else text


@functools.cache
def anchors(page):
    """What can follow # after the name of a page, as GitHub names headings."""
    text, found = without_code(page.read_text(encoding="utf-8"), inline=False), set()
    for heading in HEADING.findall(text):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(next(one for one in [name] + [f"{name}-{i}" for i in range(1, 100)] if one not in found))
    return found | set(NAMED.findall(text))


def check(root, page):
    text, count = without_code(page.read_text(encoding="utf-8")), 0
    for match in LINK.finditer(text):
        target = next(filter(None, match.groups()))
        if re.match(r"[a-z][a-z0-9+.-]*:|//", target):
            continue
        count += 1
        where = f"{page.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
        name, _, anchor = urllib.parse.unquote(target).partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.is_relative_to(root) or not file.exists():
            yield f"{where}: {target}: there is no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{where}: {target}: {name or page.name} has no such heading"
    check.links += count


def main(root):
    check.links = 0
    pages = [page for page in sorted(root.rglob("*.md")) if page.relative_to(root).parts[0] != "build"]
    errors = [error for page in pages for error in check(root, page)]
    print("\n".join(errors + [f"{check.links} links on {len(pages)} pages"]))
    return 1 if errors or not check.links else 0


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
