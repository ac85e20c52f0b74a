#!/usr/bin/env python3
"""plot.py [RECORD...] > FILE.svg: the share of the measured bandwidth that kernels reach.

A mark for each shape. Filled: cgrt. Hollow: its baseline, the faster one of PyTorch's two, as if it moved the same
bytes: those that must move. Without arguments: the committed records; docs/kernels.svg is that. Shapes of less than
16 MB are left out: what limits them is not memory.
"""
import html
import json
import pathlib
import sys

LEFT, WIDTH, LINE, MOST = 290, 500, 16, 1.25  # MOST: the share where the right edge is
SMALL = 16 << 20
RECORDS = pathlib.Path(__file__).with_name("records")


def is_drawn(row):
    return "share_of_bandwidth" in row and row["gb_per_s"] * row["median"] * 1000 >= SMALL


def mark(share, y, style, title):
    x = LEFT + WIDTH * min(share, MOST) / MOST
    return f'<circle cx="{x:.1f}" cy="{y - 4}" r="4" {style}><title>{html.escape(title)}</title></circle>'


def marks(rows, y):
    for row in rows:
        own = row["share_of_bandwidth"]
        other = own * row["median"] / row["baseline_median"]
        shape = " ".join(f"{key}={value}" for key, value in row["params"].items())
        yield mark(other, y, 'fill="none" stroke="#777"', f"{shape}: {row['baseline']} {100 * other:.0f} %")
        yield mark(own, y, 'fill="#3a8f00" fill-opacity="0.7"', f"{shape}: {100 * own:.0f} % of {row['bandwidth']}")


def text(x, y, words, more=""):
    return f'<text x="{x}" y="{y}"{more}>{html.escape(words)}</text>'


def main(paths):
    y, body = 2 * LINE, []
    for path in paths:
        record = json.loads(path.read_text(encoding="utf-8"))
        kernels = {}
        for row in filter(is_drawn, record["rows"]):
            kernels.setdefault(row["name"], []).append(row)
        if not kernels:
            continue
        y += LINE // 2
        body.append(text(4, y, f"{path.stem}: {record['device']}, {record['date']}", ' font-weight="bold"'))
        for name, rows in kernels.items():
            y += LINE
            body.append(text(14, y, name))
            body += marks(rows, y)
        y += LINE
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{y}" font-family="monospace" '
          f'font-size="12">\n<rect width="100%" height="100%" fill="white"/>')
    print(text(4, LINE, "filled: cgrt, hollow: the baseline"))
    for percent in range(0, 126, 25):
        x = LEFT + WIDTH * percent / 100 / MOST
        print(f'<line x1="{x}" x2="{x}" y1="{LINE + 6}" y2="{y}" stroke="#ddd"/>')
        print(text(x, LINE, f"{percent} %", ' text-anchor="middle"'))
    print("\n".join(body) + "\n</svg>")


if __name__ == "__main__":
    # The published ones are the same kernels again.
    main([pathlib.Path(path) for path in sys.argv[1:]] or
         [path for path in sorted(RECORDS.glob("*.json")) if path.stem != "published"])
