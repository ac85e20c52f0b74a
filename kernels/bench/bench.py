#!/usr/bin/env python3
"""bench.py KERNELBENCH [--out DIR] [--commit COMMIT] [--family NAME] [--only KERNEL]: cgrt's kernels beside their peers.

Needs PyTorch with CUDA. families/NAME.py lists the cases of a family. For each: cgrt, peer, peer, cgrt
(A B B A), device times of graphs on both sides, so that neither pays for its host. PyTorch's
side works as kernelbench does (see main.cpp). Prints each row with its share of the ceiling, which is
measured in this run, and writes a record for each family, anew after each row: one of a run that was cut short
names the cases that were not run. A case that fails is reported and the rest goes on, exit 1; exit 3 when no
case has failed, but a row is below what it should reach.
"""
import argparse
import dataclasses
import datetime
import importlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from includes import included

LAUNCHES, CHAIN_LAUNCHES, SAMPLES, WORKING_SET, MOST_SETS = 20, 400, 31, 512 << 20, 64
SMALL = 1 << 20  # bytes: MOST_SETS of less stay in the cache, and a share of the speed of memory would say nothing
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64,
         "int32": torch.int32, "int64": torch.int64}
FAMILIES = sorted(path.stem for path in pathlib.Path(__file__).with_name("families").glob("*.py"))
MEASURES = ["kernels/bench/main.cpp", "kernels/bench/ceiling.cu", "kernels/bench/bench.py"]
CEILING_SHARE = 0.92  # a row that moves its bytes at this share of the ceiling has reached enough


@dataclasses.dataclass
class Case:
    kernel: str
    type: str
    sizes: dict
    bytes: int  # that must move: each input once, each output once
    target: float = 0.0  # times as fast as the peer; 0: none
    share: float = 0.0  # of the ceiling, to be reached however slow the peer is; 0: none
    ceiling: str = "copy"  # or "read", "write_four"; empty: none, as bytes move more than once
    chain: bool = False  # in place, each programmatically after the one before
    peer: str = ""  # a kernel of kernelbench (own and library kernels alike); empty: the family's PyTorch
    label: str = ""  # of the peer
    seed: tuple = ()  # microseconds on an A100, as published: the plain way, and the seed's own

    @property
    def dtype(self):
        return TYPES[self.type]


def captured(work):
    work()  # what loads lazily
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def microseconds(graph):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000


def torch_samples(case, make_set, run):
    """make_set() gives a tuple of tensors, run(*set) launches; a chain puts the result first in the set."""
    count = 1 if case.chain else min(WORKING_SET // case.bytes + 1, MOST_SETS)
    launches = CHAIN_LAUNCHES if case.chain else max(LAUNCHES, count)
    sets = [make_set() for _ in range(count)]
    results = [None] * count

    def work(times):
        if case.chain:
            x = sets[0]
            for _ in range(times):
                x = (run(*x),) + x[1:]
            results[0] = x
        else:
            for i in range(times):
                results[i % count] = run(*sets[i % count])

    many, one = captured(lambda: work(launches)), captured(lambda: work(1))
    samples = []
    for i in range(-3, SAMPLES):
        time = microseconds(many)
        time = (time - microseconds(one)) / (launches - 1) if case.chain else time / launches
        if i >= 0:
            samples.append(time)
    del many, one
    sets.clear(), results.clear()
    torch.cuda.empty_cache()
    return samples


def kernelbench_samples(program, kernel, case):
    command = [program, kernel, case.type, *(f"{name}={size}" for name, size in case.sizes.items()), "--samples",
               str(SAMPLES)] + (["--chain"] if case.chain else [])
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip() or f"{' '.join(command)}: exit {run.returncode}")
    return [float(line) for line in run.stdout.split()]


def ceilings(program):
    """GB/s. Reading and writing: PyTorch's multiplication of a gigabyte, faster than the driver's copies."""
    gigabyte = Case("mul", "float32", {}, 2 << 30)
    copy = torch_samples(gigabyte, lambda: (torch.randn(1 << 28, device="cuda"),), lambda x: torch.mul(x, 1.5))
    rows = [("torch_mul_float32", 2 << 30, copy)]
    for kernel, moved in (("read_only", 1), ("write_four", 5)):
        case = Case(kernel, "float32", {"bytes": 1 << 28}, moved << 28)
        rows.append((kernel, case.bytes, kernelbench_samples(program, kernel, case)))
    speeds = {}
    for ceiling, (name, moved, samples) in zip(("copy", "read", "write_four"), rows):
        speeds[ceiling] = moved / statistics.median(samples) / 1000
        print(f"ceiling {ceiling}: {speeds[ceiling]:.0f} GB/s ({name})", flush=True)
    return speeds, [{"name": name, "params": {"bytes": moved}, "unit": "us", **summary(samples)}
                    for name, moved, samples in rows]


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def rounded(value):
    return float(f"{value:.5g}")


def summary(samples):
    return {"median": rounded(statistics.median(samples)), "p95": rounded(quantile(samples, 0.95)),
            "min": rounded(min(samples)), "samples": len(samples)}


def measured(program, family, case, speeds):
    if case.peer:
        peer = lambda: kernelbench_samples(program, case.peer, case)
    else:
        peer = lambda: torch_samples(case, *family.peer(case))
    own = kernelbench_samples(program, case.kernel, case)
    other = peer() + peer()
    own += kernelbench_samples(program, case.kernel, case)
    ratios = [b / a for a, b in zip(own, other)]
    speedup = statistics.median(ratios)
    row = {"name": f"{case.kernel}_{case.type}" + ("_chain" if case.chain else ""), "params": case.sizes, "unit": "us",
           **summary(own), "peer": case.peer or f"torch {torch.__version__} {case.label or case.kernel}",
           "peer_median": rounded(statistics.median(other)), "speedup": rounded(speedup),
           "spread": rounded((quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2 / speedup)}
    if case.seed:
        row["seed"] = {"peer_median": case.seed[0], "median": case.seed[1],
                       "speedup": rounded(case.seed[0] / case.seed[1])}
    if case.target:
        row["wanted"] = case.target
    if case.share:
        row["wanted_share"] = case.share
    if case.ceiling and not case.chain and case.bytes >= SMALL:
        speed = case.bytes / row["median"] / 1000
        row |= {"gb_per_s": rounded(speed), "share_of_ceiling": rounded(speed / speeds[case.ceiling]),
                "ceiling": case.ceiling}
    share = row.get("share_of_ceiling", 0)
    if case.share:
        row["reached"] = share >= case.share
    elif case.target:
        row["reached"] = row["speedup"] >= case.target or share >= CEILING_SHARE
    return row


def line(row):
    shape = " ".join(f"{key}={value}" for key, value in row["params"].items())
    text = (f"{row['name']:28} {shape:32} {row['median']:9.2f} us  {row['peer'][:24]:24} {row['peer_median']:9.2f} us"
            f"  x{row['speedup']:5.2f}")
    if "gb_per_s" in row:
        text += f"  {row['gb_per_s']:5.0f} GB/s {100 * row['share_of_ceiling']:4.0f} %"
    if "reached" in row:
        wanted = row["wanted"] if "wanted" in row else f"{100 * row['wanted_share']:.0f} %"
        text += f"  wanted {wanted}: {'ok' if row['reached'] else 'MISSED'}"
    return text


def described(case):
    return f"{case.kernel} {case.type} {case.sizes}"


def write_record(options, name, family, driver, rows, failed):
    record = {"schema": "cgrt-record-1", "program": "kernelbench",
              "command": f"kernels/bench/bench.py --family {name}" +
                         (f" --only {options.only}" if options.only else ""), "commit": options.commit,
              "measures": MEASURES + [f"kernels/bench/families/{name}.py"] + family.MEASURES +
              included(family.MEASURES),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
              "device": torch.cuda.get_device_name(0), "driver": driver, "cuda": torch.version.cuda,
              "simulated": False} | ({"failed": failed} if failed else {})
    lines = ",\n".join("    " + json.dumps(row) for row in rows)
    path = pathlib.Path(options.out, f"kernels-{name}.json")
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=2)[:-2] + ',\n  "rows": [\n' + lines + "\n  ]\n}\n", encoding="utf-8")
    part.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--out", help="a folder for the records")
    parser.add_argument("--commit", default="")
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    options = parser.parse_args()

    speeds, ceiling_rows = ceilings(options.program)
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout.split()[0]
    all_missed = all_failed = 0
    for name in [options.family] if options.family else FAMILIES:
        family = importlib.import_module(f"families.{name}")
        cases = [case for case in family.cases() if options.only in case.kernel]
        begin, rows, failed = time.monotonic(), [], []
        for index, case in enumerate(cases, 1):
            progress = f"{name} {index}/{len(cases)}"
            try:
                rows.append(measured(options.program, family, case, speeds))
                print(f"{progress:20} {line(rows[-1])}", flush=True)
            except RuntimeError as error:  # PyTorch's, too
                failed.append(f"{described(case)}: {error}")
                print(f"{progress:20} FAILED {failed[-1]}", flush=True)
            torch.cuda.empty_cache()  # kernelbench needs memory, too
            if options.out:
                not_run = [f"{described(case)}: not run" for case in cases[index:]]
                write_record(options, name, family, driver, ceiling_rows + rows, failed + not_run)
        missed = sum(not row.get("reached", True) for row in rows)
        all_missed += missed
        all_failed += len(failed)
        print(f"{name}: {len(rows)} rows in {time.monotonic() - begin:.0f} s, {missed} missed, {len(failed)} failed",
              flush=True)
    return 1 if all_failed else 3 if all_missed else 0


if __name__ == "__main__":
    sys.modules["bench"] = sys.modules["__main__"]  # for the families
    sys.exit(main())
