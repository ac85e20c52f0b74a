#!/usr/bin/env python3
"""decode_step.py KERNELBENCH [--out DIR] [--commit COMMIT] [--hidden N,...]: each kernel of a decoder's step in a graph.

A kernel is a node of a chain of 20 (decode_step.cpp). What is recorded is the time of a node over that of an empty
kernel's in a chain of the same edges, programmatic and full ones: both are measured in turns. Prints each row and writes
decode_step.json, with the rows of other shapes that a record of the same commit and device has there. The kernels of one
shape are all in memory at once, which takes about 30 GB.
"""
import argparse
import contextlib
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from bench import MEASURES, rounded, summary
from case import Case
from includes import included
from sides import Program, in_turns

TYPE, HEAD, KV_HEADS, POSITIONS, VOCABULARY = "bfloat16", 128, 8, 4096, 128256
EMBEDDINGS = 8192  # of the vocabulary, so that 20 tables find room
INTERMEDIATE = {4096: 14336, 8192: 28672}
ROWS = (1, 8, 64)
FAMILIES = ("decode_attention", "elementwise", "index", "norm", "rope", "sampling", "skinny_gemm", "topk")
EDGES = {"programmatic": "step_", "full": "step_full_"}


def product(rows, n, k):
    return "skinny_gemm", {"rows": rows, "n": n, "k": k}


def nodes(hidden, rows):
    """The kernels of a step by what they are there for, and their sizes. The gate is a kernel of its own here.

    The whole layer: two norms, the products, rope, attention and the gate behind one another.
    """
    heads, wide = hidden // HEAD, INTERMEDIATE[hidden]
    of_heads = {"heads": heads, "kv_heads": KV_HEADS, "head_size": HEAD}
    return {
        "embedding": ("index_select", {"rows": EMBEDDINGS, "columns": hidden, "count": rows}),
        "norm with residual": ("add_rms_norm", {"rows": rows, "columns": hidden}),
        "qkv product": product(rows, (heads + 2 * KV_HEADS) * HEAD, hidden),
        "rope and append": ("rope_paged", {"tokens": rows, **of_heads}),
        "attention": ("decode_attention", {"sequences": rows, "positions": POSITIONS, **of_heads}),
        "output product": product(rows, hidden, hidden),
        "gate and up product": product(rows, 2 * wide, hidden),
        "silu gate": ("silu_and_mul", {"rows": rows, "columns": wide}),
        "down product": product(rows, hidden, wide),
        "greedy token": ("sample_greedy", {"rows": rows, "vocabulary": VOCABULARY}),
        "drawn token": ("sample_random", {"rows": rows, "vocabulary": VOCABULARY}),
        "routing to experts": ("topk_softmax", {"tokens": rows, "experts": 128, "k": 8}),
        "whole layer": ("layer", {"rows": rows, "hidden": hidden, "intermediate": wide, "positions": POSITIONS,
                                  **of_heads}),
    }


def samples_of(program, cases):
    """Of all cases, in turns. Their processes start side by side, and wait until they are asked."""
    with contextlib.ExitStack() as opened, ThreadPoolExecutor(len(cases)) as threads:
        sides = [opened.enter_context(contextlib.closing(Program(program, case.kernel, case))) for case in cases]
        list(threads.map(lambda side: side.samples(1), sides))
        return in_turns(sides)


def over(samples, empty):
    return [rounded(one - other) for one, other in zip(samples, empty)]


def measured(program, hidden, rows):
    steps = {"empty": ("empty", {}), **nodes(hidden, rows)}
    cases = [Case(prefix + kernel, TYPE, sizes, 0) for prefix in EDGES.values() for kernel, sizes in steps.values()]
    samples = samples_of(program, cases)
    by_edge = {edge: dict(zip(steps, samples[i * len(steps):])) for i, edge in enumerate(EDGES)}
    empty = {edge: rounded(statistics.median(of["empty"])) for edge, of in by_edge.items()}
    for name, (kernel, sizes) in nodes(hidden, rows).items():
        programmatic, full = (over(of[name], of["empty"]) for of in by_edge.values())
        yield {"name": name, "params": {"hidden": hidden, "rows": rows}, "unit": "us", **summary(programmatic),
               "full_edges": summary(full), "empty_node": empty, "kernel": kernel, "sizes": sizes}


def line(row):
    return (f"{row['name']:20} hidden {row['params']['hidden']} rows {row['params']['rows']:2} {row['median']:9.2f} us"
            f"  full edges {row['full_edges']['median']:9.2f} us  empty {row['empty_node']}")


def key(row):
    return *row["params"].values(), row["name"]


def write(path, commit, rows):
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout.split()[0]
    folders = [f"kernels/cgrt_kernels/{family}" for family in FAMILIES]
    sources = [f"kernels/bench/{family}.cpp" for family in FAMILIES]
    own = ["kernels/bench/decode_step.cpp", "kernels/bench/decode_step.py"]
    record = {"schema": "cgrt-record-1", "program": "decode_step", "command": "kernels/bench/decode_step.py",
              "commit": commit, "measures": MEASURES + own + folders + sources + included(folders + sources),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
              "device": torch.cuda.get_device_name(0), "driver": driver, "cuda": torch.version.cuda, "simulated": False}
    if commit and path.exists():
        old = json.loads(path.read_text(encoding="utf-8"))
        if all(old[name] == record[name] for name in ("commit", "device", "driver")):
            rows = {key(row): row for row in old["rows"]} | rows
    order = [(hidden, count, name) for hidden in INTERMEDIATE for count in ROWS for name in nodes(hidden, count)]
    lines = ",\n".join("    " + json.dumps(rows[one]) for one in order if one in rows)
    path.write_text(json.dumps(record, indent=2)[:-2] + ',\n  "rows": [\n' + lines + "\n  ]\n}\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--out", help="a folder for the record")
    parser.add_argument("--commit", default="")
    parser.add_argument("--hidden", type=lambda text: [int(part) for part in text.split(",")],
                        default=list(INTERMEDIATE))
    options = parser.parse_args()

    rows = {}
    for hidden in options.hidden:
        for count in ROWS:
            begin = time.monotonic()
            for row in measured(options.program, hidden, count):
                rows[key(row)] = row
                print(line(row), flush=True)
            print(f"{time.monotonic() - begin:.1f} s", flush=True)
    if options.out:
        write(pathlib.Path(options.out, "decode_step.json"), options.commit, rows)


if __name__ == "__main__":
    sys.exit(main())
