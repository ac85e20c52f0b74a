#!/usr/bin/env python3
"""bench.py KERNELBENCH [--json FILE] [--commit COMMIT]: cgrt's kernels beside PyTorch's, on this machine.

Needs PyTorch with CUDA. For each shape: cgrt, PyTorch, PyTorch, cgrt (A B B A), device times of captured
graphs on both sides, so that neither pays for its host. PyTorch's side works as kernelbench does (see
main.cpp). Prints a table with the share of the speed at which PyTorch's multiplication by a number reads
and writes in this run, and writes the record.
Exit 1 when a row is below what it should reach.
"""
import argparse
import datetime
import json
import statistics
import subprocess
import sys

import torch
import torch.nn.functional as F

LAUNCHES, SAMPLES, WORKING_SET = 20, 31, 512 << 20
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
MEASURES = ["kernels/cgrt_kernels/common", "kernels/cgrt_kernels/rows", "kernels/bench/main.cpp", "kernels/bench/bench.py"]

# rows, columns, and the speedup over PyTorch to reach: softmax, layer_norm, rms_norm, each in float32 and float16
TARGETS = [
    (49152, 1024, (0.98, 1.5), (1.4, 2.0), (1.0, 1.2)),
    (8192, 4096, (1.5, 2.8), (1.3, 1.5), (1.25, 1.2)),
    (4096, 8192, (1.9, 3.3), (1.5, 1.7), (1.4, 1.5)),
    (2048, 32768, (1.4, 1.6), (1.8, 1.6), (1.4, 1.5)),
    (512, 131072, (1.7, 1.9), (2.1, 3.4), (1.6, 2.9)),
]
CEILING_SHARE = 0.92  # a row that moves its bytes at this share of the copy speed has reached enough


def cases():
    """name, type, rows, columns, chained, target (0: none)"""
    for rows, columns, *targets in TARGETS:
        for kernel, (single, half) in zip(("softmax", "layer_norm", "rms_norm"), targets):
            yield kernel, "float32", rows, columns, False, single
            yield kernel, "float16", rows, columns, False, half
    for rows, columns in ((8192, 4096), (64, 128256), (8192, 4097)):
        yield "log_softmax", "float32", rows, columns, False, 0
    for columns in (1024, 4096, 8192, 32768, 131072):
        yield "rms_norm", "bfloat16", max(16384, 32768 * 1024 // columns) if columns < 131072 else 2048, columns, False, 0
    for columns in (4096, 7168, 8192):
        for rows in (1, 16, 64, 256):
            yield "rms_norm", "float16", rows, columns, True, 0


def operation(kernel, columns, weight, bias):
    if kernel == "mul":  # the ceiling: a gigabyte read, a gigabyte written, faster than the driver's own copies
        return lambda x: torch.mul(x, 1.5)
    if kernel == "softmax":
        return lambda x: F.softmax(x, -1)
    if kernel == "log_softmax":
        return lambda x: F.log_softmax(x, -1)
    if kernel == "layer_norm":
        return lambda x: F.layer_norm(x, (columns,), weight, bias)
    return lambda x: F.rms_norm(x, (columns,), weight, 1e-5)


def captured(work):
    work()  # what loads lazily
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def milliseconds(graph):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def peer_samples(kernel, name, rows, columns, chained):
    dtype = TYPES[name]
    bytes_ = rows * columns * (4 if name == "float32" else 2)
    count = 1 if chained else min(max(WORKING_SET // (2 * bytes_) + 1, 4), 64)
    launches = LAUNCHES if chained else max(LAUNCHES, count)
    inputs = [torch.randn(rows, columns, device="cuda", dtype=dtype) for _ in range(count)]
    weight, bias = (torch.randn(columns, device="cuda", dtype=dtype) for _ in range(2))
    run = operation(kernel, columns, weight, bias)
    outputs = [None] * count

    def work(times):
        if chained:
            x = inputs[0]
            for _ in range(times):
                x = run(x)
            outputs[0] = x
        else:
            for i in range(times):
                outputs[i % count] = run(inputs[i % count])

    many, one = captured(lambda: work(launches)), captured(lambda: work(1))
    samples = []
    for i in range(-3, SAMPLES):
        time = milliseconds(many) * 1000
        time = (time - milliseconds(one) * 1000) / (launches - 1) if chained else time / launches
        if i >= 0:
            samples.append(time)
    del many, one
    inputs.clear(), outputs.clear()
    torch.cuda.empty_cache()
    return samples


def own_samples(program, kernel, name, rows, columns, chained):
    command = [program, "--kernel", kernel, "--type", name, "--rows", str(rows), "--columns", str(columns),
               "--samples", str(SAMPLES)] + (["--chain"] if chained else [])
    return [float(line) for line in subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()]


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    options = parser.parse_args()

    copy = statistics.median(peer_samples("mul", "float32", 32768, 8192, False))
    copy_speed = 2 * 32768 * 8192 * 4 / copy / 1000
    print(f"reading and writing 1 GiB: {copy:.1f} us, {copy_speed:.0f} GB/s", flush=True)
    table, missed = [], 0
    for kernel, name, rows, columns, chained, target in cases():
        if options.only not in kernel:
            continue
        case = (kernel, name, rows, columns, chained)
        own = own_samples(options.program, *case)
        peer = peer_samples(*case) + peer_samples(*case)
        own += own_samples(options.program, *case)
        ratios = [b / a for a, b in zip(own, peer)]
        speedup = statistics.median(ratios)
        row = {"name": f"{kernel}_{name}" + ("_chain" if chained else ""), "params": {"rows": rows, "columns": columns},
               "unit": "us", "median": statistics.median(own), "p95": quantile(own, 0.95), "samples": len(own),
               "peer": f"torch {torch.__version__} F.{kernel}", "peer_median": statistics.median(peer),
               "speedup": speedup, "spread": (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2 / speedup}
        row = {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}
        table.append(row)
        speed = 2 * rows * columns * (4 if name == "float32" else 2) / row["median"] / 1000
        verdict = ""
        if target:
            reached = speedup >= target or speed >= CEILING_SHARE * copy_speed
            missed += not reached
            verdict = f"wanted {target}: {'ok' if reached else 'MISSED'}"
        share = "" if chained else f"{speed:6.0f} GB/s {100 * speed / copy_speed:4.0f} %"
        print(f"{row['name']:30} {rows:6}x{columns:<7} {row['median']:9.2f} us  torch {row['peer_median']:9.2f} us  "
              f"x{speedup:5.2f}  {share:18} {verdict}", flush=True)

    if options.json:
        driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], check=True,
                                stdout=subprocess.PIPE, text=True).stdout.split()[0]
        copied = {"name": "torch_mul_float32", "params": {"rows": 32768, "columns": 8192}, "unit": "us",
                  "median": float(f"{copy:.5g}"), "p95": float(f"{copy:.5g}"), "samples": SAMPLES}
        record = {"schema": "cgrt-record-1", "program": "kernelbench", "command": "kernels/bench/bench.py",
                  "commit": options.commit, "measures": MEASURES,
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                  "device": torch.cuda.get_device_name(0), "driver": driver, "cuda": torch.version.cuda,
                  "simulated": False}
        lines = ",\n".join("    " + json.dumps(row) for row in [copied] + table)
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(json.dumps(record, indent=2)[:-2] + ',\n  "rows": [\n' + lines + "\n  ]\n}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
