#!/usr/bin/env python3
"""Prints a record (any program's: schema cgrt-record-1) as the Markdown table of a README.

    table.py records/h200.json
    table.py records/h200.json --rows graph_launch capture --where 1 1000
    table.py --summary kernels/bench/records

The same record gives the same text. Rows stand in the record's order; the ceilings of kernels stand below them.
"""

import argparse
import json
import pathlib
import statistics
import sys

SCHEMA = "cgrt-record-1"


def read_record(path):
    """The record in the file; exits with a sentence when it is none."""
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"table.py: {path}: {error}")
    schema = record.get("schema") if isinstance(record, dict) else None
    if schema != SCHEMA:
        sys.exit(f"table.py: {path}: the schema is {schema!r}, wanted {SCHEMA!r}")
    return record


def select(record, names):
    """The rows of those names, or all; of kernels those with a peer, as the others are the ceilings."""
    rows = [row for row in record["rows"] if "peer" in row or record["program"] != "kernelbench"]
    missing = sorted(set(names) - {row["name"] for row in rows})
    if missing:
        sys.exit(f"table.py: the record has no row {', '.join(missing)}")
    return [row for row in rows if not names or row["name"] in names]


def number(value):
    """Three digits are what the spread of such figures allows; null is a simulated figure."""
    if value is None:
        return "simulated"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def figure(value, unit):
    return "simulated" if value is None else f"{number(value)} {unit}"


def cells_of(row, params):
    values = [row["params"].get(name) for name in params]
    cells = [row["name"]] + ["" if value is None else f"{value:,}" for value in values]
    cells.append(figure(row["median"], row["unit"]))
    if "peer" not in row:
        return cells + ["", "", ""]
    ratio = "simulated" if row["speedup"] is None else f"{row['speedup']:.2f}"
    return cells + [figure(row["peer_median"], row["unit"]), ratio, row["peer"]]


def share_of(row):
    return f"{100 * row['share_of_ceiling']:.0f} % {row['ceiling']}" if "share_of_ceiling" in row else ""


def wanted(row):
    share = "wanted_share" in row
    if not share and "wanted" not in row:
        return ""
    text = f"{100 * row['wanted_share']:.0f} %" if share else f"{row['wanted']:.2f}"
    return text if row.get("reached", True) else text + ", missed"


def seed(row):
    """Its ratio on an A100, and the times that make it."""
    if "seed" not in row:
        return ""
    before, after = (figure(row["seed"][name], row["unit"]) for name in ("peer_median", "median"))
    return f"{row['seed']['speedup']:.2f} ({before} / {after})"


def over_empty(record):
    """What a chain's kernel takes longer than one that does nothing, where the record has that one."""
    empty = [row["median"] for row in record["rows"] if row["name"] == "empty_float32_chain"]
    return lambda row: figure(row["median"] - empty[0], row["unit"]) if empty else ""


def to_markdown(lines):
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def markdown(record, rows):
    params = list(dict.fromkeys(name for row in rows for name in row["params"]))
    head = ["row"] + params + ["median", "peer's median", "ratio", "peer"]
    lines = [head, ["---"] + ["---:"] * (len(params) + 3) + ["---"]]
    lines += [cells_of(row, params) for row in rows]
    if not any("peer" in row for row in rows):
        lines = [line[:-3] for line in lines]
    for name, cell in (("ratio on an A100", seed), ("over an empty node", over_empty(record)),
                       ("share of ceiling", share_of), ("wanted", wanted)):
        if any(cell(row) for row in rows):
            lines = [line + [more] for line, more in zip(lines, [name, "---:"] + [cell(row) for row in rows])]
    return to_markdown(lines)


def caption(record, rows):
    parts = [record["device"], f"driver {record['driver']}", f"CUDA {record['cuda']}", record["date"]]
    if record["commit"]:
        parts.append(f"commit {record['commit']}")
    if record["simulated"]:
        return f"{', '.join(parts)}; simulated: no figure here is a time."
    counts = sorted({row["samples"] for row in rows})
    samples = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    note = " Ratio: above 1 is better than the peer." if any("peer" in row for row in rows) else ""
    speeds = {row["ceiling"]: row["gb_per_s"] / row["share_of_ceiling"] for row in rows if "share_of_ceiling" in row}
    if speeds:
        note += " Ceiling: " + ", ".join(f"{name} {number(speed)} GB/s" for name, speed in sorted(speeds.items())) + "."
    return f"{', '.join(parts)}; medians of {samples} samples.{note}"


def summary(folder):
    """A line for each record in the folder: its rows whose peer is PyTorch, from the least figure to the most, and of
    all rows how many reached what is wanted."""
    lines = [["family", "rows", "ratio: least", "median", "most", "share of ceiling: least", "median", "most",
              "reached what is wanted"], ["---"] + ["---:"] * 8]
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        record = read_record(path)
        rows = [row for row in record["rows"] if row.get("peer", "").startswith("torch ")]
        reached = [row["reached"] for row in record["rows"] if "reached" in row]
        ratios = [row["speedup"] for row in rows]
        shares = [100 * row["share_of_ceiling"] for row in rows if "share_of_ceiling" in row]
        if ratios:
            lines.append([path.stem, str(len(rows))] + [f"{of(ratios):.2f}" for of in (min, statistics.median, max)] +
                         [f"{of(shares):.0f} %" if shares else "" for of in (min, statistics.median, max)] +
                         [f"{sum(reached)} of {len(reached)}" if reached else ""])
    return to_markdown(lines)


def main():
    parser = argparse.ArgumentParser(description="Prints a record of measured figures as a Markdown table.")
    parser.add_argument("file", help="a record, schema " + SCHEMA + "; with --summary a folder of them")
    parser.add_argument("--summary", action="store_true", help="a line for each record, of its rows beside PyTorch")
    parser.add_argument("--rows", nargs="+", default=[], metavar="NAME", help="only the rows of these names")
    parser.add_argument("--where", type=int, nargs="+", default=[], metavar="N", help="only these values of the first parameter")
    parser.add_argument("--title", action="store_true", help="only the line that says where and when it was measured")
    options = parser.parse_args()

    if options.summary:
        print(summary(options.file))
        return
    record = read_record(options.file)
    rows = select(record, options.rows)
    if not rows:
        sys.exit(f"table.py: {options.file} has no rows")
    if options.where:
        rows = [row for row in rows if not row["params"] or next(iter(row["params"].values())) in options.where]
    if options.title:
        print(caption(record, rows))
        return
    print(markdown(record, rows))
    print()
    print(caption(record, rows))


if __name__ == "__main__":
    main()
