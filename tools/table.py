#!/usr/bin/env python3
"""Prints a record (any program's: schema cgrt-record-1) as the Markdown table of a README.

    table.py records/h200.json
    table.py records/h200.json --rows graph_launch capture --where 1 1000
    table.py records/softmax.json --figure softmax_float16 8192 4096
    table.py --summary kernels/bench/records

The same record gives the same text. Rows stand in the record's order; the measured bandwidths of kernels stand below.
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
        sys.exit(f"table.py: {path}: the schema is {schema!r}, not {SCHEMA!r}")
    return record


def select(record, names):
    """The rows of those names, or all; of kernels those with a baseline, as the others are measured bandwidths."""
    rows = [row for row in record["rows"] if "baseline" in row or record["program"] != "kernelbench"]
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
    if "baseline" not in row:
        return cells + ["", "", ""]
    ratio = "simulated" if row["speedup"] is None else f"{row['speedup']:.2f}"
    return cells + [figure(row["baseline_median"], row["unit"]), ratio, row["baseline"]]


def over(side):
    """The ratio to one of PyTorch's two sides."""
    return lambda row: "" if side not in row else "failed" if "failed" in row[side] else f"{row[side]['speedup']:.2f}"


def share_of(row):
    return f"{100 * row['share_of_bandwidth']:.0f} % {row['bandwidth']}" if "share_of_bandwidth" in row else ""


def target(row):
    texts = [f"{row['target']:.2f}"] if "target" in row else []
    texts += [f"{100 * row['target_share']:.0f} %"] if "target_share" in row else []
    texts += [f"{number(row['limit_us'])} us"] if "limit_us" in row else []
    return ", ".join(texts + ([] if row.get("reached", True) else ["missed"]))


def published(row):
    """Its ratio on an A100, and the times that make it."""
    if "published" not in row:
        return ""
    before, after = (figure(row["published"][name], row["unit"]) for name in ("baseline_median", "median"))
    return f"{row['published']['speedup']:.2f} ({before} / {after})"


def over_empty(record):
    """What a chain's kernel takes longer than one that does nothing, where the record has that one."""
    empty = [row["median"] for row in record["rows"] if row["name"] == "empty_float32_chain"]
    return lambda row: figure(row["median"] - empty[0], row["unit"]) if empty else ""


def with_full_edges(row):
    """Of a decoder's step: over an empty node, where edges are not programmatic."""
    return figure(row["full_edges"]["median"], row["unit"]) if "full_edges" in row else ""


def to_markdown(lines):
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def markdown(record, rows):
    params = list(dict.fromkeys(name for row in rows for name in row["params"]))
    head = ["row"] + params + ["median", "baseline's median", "ratio", "baseline"]
    lines = [head, ["---"] + ["---:"] * (len(params) + 3) + ["---"]]
    lines += [cells_of(row, params) for row in rows]
    if not any("baseline" in row for row in rows):
        lines = [line[:-3] for line in lines]
    for name, cell in (("to PyTorch", over("eager")), ("to torch.compile", over("compiled")),
                       ("ratio on an A100", published), ("over an empty node", over_empty(record)),
                       ("with full edges", with_full_edges),
                       ("share of bandwidth", share_of), ("target", target)):
        if any(cell(row) for row in rows):
            lines = [line + [more] for line, more in zip(lines, [name, "---:"] + [cell(row) for row in rows])]
    return to_markdown(lines)


def one_figure(rows, values):
    """What one row says: type, shape, ratio and share. Of rows of the same shape, that beside PyTorch."""
    given = [row for row in rows if [str(value) for value in row["params"].values()][:len(values)] == values]
    if not given:
        sys.exit(f"table.py: {rows[0]['name']} has no row of {' '.join(values)}")
    row = next((row for row in given if row["baseline"].startswith("torch")), given[0])
    name = row["name"].removesuffix("_chain").rsplit("_", 1)[-1]
    baseline = {"torch": "PyTorch", "torch.compile": "torch.compile"}.get(row["baseline"].split()[0])
    baseline = baseline or ("CUB" if "cub" in row["baseline"] else row["baseline"])
    shape = [f"{key} {value:,}" for key, value in list(row["params"].items())[:len(values)]]
    text = f"{', '.join([name] + shape)}: {row['speedup']:.2f} x {baseline}"
    return text + (f", {100 * row['share_of_bandwidth']:.0f} %" if "share_of_bandwidth" in row else "")


def spread_of(name, speeds):
    low, high = number(min(speeds)), number(max(speeds))
    return f"{name} {low}" if low == high else f"{name} {low} to {high}"


def caption(record, rows):
    parts = [record["device"], f"driver {record['driver']}", f"CUDA {record['cuda']}", record["date"]]
    if record["commit"]:
        parts.append(f"commit {record['commit'][:12]}")
    if record["simulated"]:
        return f"{', '.join(parts)}; simulated: no figure here is a time."
    counts = sorted({row["samples"] for row in rows})
    samples = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    note = ""
    if any("baseline" in row for row in rows):
        note = " Ratio: the median of those of pairs, not the ratio of the medians; above 1 is better than the baseline."
    speeds = {}
    for row in rows:
        if "share_of_bandwidth" in row:
            speeds.setdefault(row["bandwidth"], []).append(row["gb_per_s"] / row["share_of_bandwidth"])
    if speeds:
        note += f" Measured bandwidth: {', '.join(spread_of(name, speeds[name]) for name in sorted(speeds))} GB/s."
    return f"{', '.join(parts)}; medians of {samples} samples.{note}"


def faster_baseline(rows):
    """Which of PyTorch's two sides is faster, in how many of the rows, and how many have the eager one alone."""
    both = [row for row in rows if "compiled" in row]
    compiled = sum(row["baseline"].startswith("torch.compile ") for row in both)
    counts = ((len(both) - compiled, "PyTorch"), (compiled, "torch.compile"), (len(rows) - len(both), "PyTorch alone"))
    return ", ".join(f"{name} {count}" for count, name in counts if count)


def summary(folder):
    """A line for each record in the folder: its rows beside PyTorch, min, median and max of their figures, and of all
    rows how many reach their targets. Ratios are to the faster of PyTorch's two sides, eager and torch.compile."""
    lines = [["family", "rows", "ratio: min", "median", "max", "faster baseline", "share of bandwidth: min",
              "median", "max", "reach their target"], ["---"] + ["---:"] * 4 + ["---"] + ["---:"] * 4]
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        record = read_record(path)
        rows = [row for row in record["rows"] if row.get("baseline", "").startswith(("torch ", "torch.compile "))]
        reached = [row["reached"] for row in record["rows"] if "reached" in row]
        ratios = [row["speedup"] for row in rows]
        shares = [100 * row["share_of_bandwidth"] for row in rows if "share_of_bandwidth" in row]
        if ratios:
            lines.append([path.stem, str(len(rows))] + [f"{of(ratios):.2f}" for of in (min, statistics.median, max)] +
                         [faster_baseline(rows)] +
                         [f"{of(shares):.0f} %" if shares else "" for of in (min, statistics.median, max)] +
                         [f"{sum(reached)} of {len(reached)}" if reached else ""])
    return to_markdown(lines)


def main():
    parser = argparse.ArgumentParser(description="Prints a record of measured figures as a Markdown table.")
    parser.add_argument("file", help="a record, schema " + SCHEMA + "; with --summary a folder of them")
    parser.add_argument("--summary", action="store_true", help="a line for each record, of its rows beside PyTorch")
    parser.add_argument("--rows", nargs="+", default=[], metavar="NAME", help="only the rows of these names")
    parser.add_argument("--where", type=int, nargs="+", default=[], metavar="N", help="only these values of the first parameter")
    parser.add_argument("--figure", nargs="+", default=[], metavar="NAME",
                        help="one row in a few words: its name, then the values of its first parameters")
    parser.add_argument("--title", action="store_true", help="only the line that says where and when it was measured")
    options = parser.parse_args()

    if options.summary:
        print(summary(options.file))
        return
    record = read_record(options.file)
    rows = select(record, options.figure[:1] or options.rows)
    if not rows:
        sys.exit(f"table.py: {options.file} has no rows")
    if options.figure:
        print(one_figure(rows, options.figure[1:]))
        return
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
