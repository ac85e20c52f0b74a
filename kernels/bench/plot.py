#!/usr/bin/env python3
"""plot.py RECORD... > FILE.svg: the share of the ceiling that each row of kernel records reaches, by shape.

Filled: cgrt. Hollow: its peer, which moves the same bytes in its own time.
"""
import html
import json
import pathlib
import sys

LEFT, WIDTH, LINE = 430, 500, 15


def main(paths):
    lines = []
    for path in paths:
        record = json.loads(pathlib.Path(path).read_text())
        lines.append((f"{pathlib.Path(path).stem}: {record['device']}, driver {record['driver']}, {record['date']}", None))
        lines += [(f"{row['name']}  {' '.join(f'{k}={v}' for k, v in row['params'].items())}", row)
                  for row in record["rows"] if "share_of_ceiling" in row]
    height = LINE * (len(lines) + 2)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
          f'font-family="monospace" font-size="11"><rect width="100%" height="100%" fill="white"/>')
    for percent in range(0, 101, 25):
        x = LEFT + WIDTH * percent / 100
        print(f'<line x1="{x}" x2="{x}" y1="{LINE}" y2="{height}" stroke="#ccc"/><text x="{x - 10}" y="{LINE - 3}">{percent} %</text>')
    for i, (label, row) in enumerate(lines):
        y = LINE * (i + 1)
        if row is None:
            print(f'<text x="4" y="{y + 11}" font-weight="bold">{html.escape(label)}</text>')
            continue
        own = row["share_of_ceiling"]
        peer = own * row["median"] / row["peer_median"]
        print(f'<text x="14" y="{y + 11}">{html.escape(label)}</text>'
              f'<rect x="{LEFT}" y="{y + 2}" width="{WIDTH * own:.1f}" height="{LINE - 4}" fill="#76b900"/>'
              f'<rect x="{LEFT}" y="{y + 2}" width="{WIDTH * peer:.1f}" height="{LINE - 4}" fill="none" stroke="#333"/>'
              f'<text x="{LEFT + WIDTH * max(own, peer) + 4:.1f}" y="{y + 11}">{100 * own:.0f} %</text>')
    print("</svg>")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
