"""What the tests of headers share."""
import re


def head_comment(path):
    """The lines of the comment at the head of a header, without their slashes."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:])
    return lines


def is_internal(path):
    """Whether the header says that it is the implementation's own: "Internal to graph/."."""
    return re.search(r"\bInternal\b", " ".join(head_comment(path))) is not None
