#!/usr/bin/env python3
"""bench.py KERNELBENCH [--out DIR] [--commit COMMIT] [--family NAME,...] [--only KERNEL]: cgrt's kernels beside others.

Needs PyTorch with CUDA. families/NAME.py lists the cases of a family. The baseline of a case is PyTorch, both eager and
compiled (compiled.py), or a kernel of kernelbench. What counts is the ratio to the faster one; samples are taken in
turns (sides.py), so it is one of neighbours. Prints each row with its share of the measured bandwidth (bandwidth.py)
and writes a record for each family, anew after each row: one of a run that was cut short names the cases that were not
run, and a later run of the same commit into the same DIR goes on with it. A case that fails, or that torch.compile
cannot compile, is reported and the rest goes on, exit 1; exit 3 when nothing has failed, but a row misses its target.
"""
import argparse
import contextlib
import datetime
import importlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from bandwidth import KERNELS, Bandwidths
from case import PARITY
from compiled import Compiler, compiled, in_short, use_cache
from includes import included
from sides import Captured, Program, in_turns, set_count

SMALL = 1 << 20  # bytes: 64 sets of less stay in the cache, and a share of the speed of memory would say nothing
NEAR, NEAR_TARGET = 0.90, 0.98  # above this share of the measured bandwidth parity is the second: it is noise then
LIMITED, LIMIT_US, LIMIT_SHARE = 32 << 20, 4.0, 0.88  # from so many bytes on: microseconds, and share of the bandwidth
FAMILIES = sorted(path.stem for path in pathlib.Path(__file__).with_name("families").glob("*.py"))
MEASURES = [f"kernels/bench/{name}" for name in ("main.cpp", "bandwidth.cu", "bench.py", "bandwidth.py", "case.py",
                                                 "compiled.py", "sides.py")]


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


def beside(own, other):
    ratios = [b / a for a, b in zip(own, other)]
    speedup = statistics.median(ratios)
    return {"median": rounded(statistics.median(other)), "speedup": rounded(speedup),
            "spread": rounded((quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2 / speedup)}


def samples_of(program, family, case, compile_error):
    """Of each side by its name, and why the compiled one is missing or empty."""
    with contextlib.ExitStack() as opened:
        sides = {"own": opened.enter_context(contextlib.closing(Program(program, case.kernel, case)))}
        if case.baseline:
            sides["library"] = opened.enter_context(contextlib.closing(Program(program, case.baseline, case)))
        else:
            make_set, run, *plain = family.baseline(case)
            sets = [make_set() for _ in range(set_count(case))]
            sides["eager"] = opened.enter_context(contextlib.closing(Captured(case, sets, run)))
            if case.compiles and not compile_error:
                try:
                    side = Captured(case, sets, compiled(*plain or (run,)))
                    sides["compiled"] = opened.enter_context(contextlib.closing(side))
                except Exception as error:  # Triton's have no common base
                    compile_error = in_short(error)
        return dict(zip(sides, in_turns(list(sides.values())))), compile_error


def baseline_names(case):
    """Of each side that may be the faster."""
    label = f"{torch.__version__} {case.label or case.kernel}"
    return {"library": case.baseline, "eager": f"torch {label}", "compiled": f"torch.compile {label}"}


def measured(program, family, case, bandwidths, compile_error):
    samples, compile_error = samples_of(program, family, case, compile_error)
    own = samples.pop("own")
    sides = {name: beside(own, other) for name, other in samples.items()}
    faster = min(sides, key=lambda name: sides[name]["median"])
    row = {"name": case.name, "params": case.sizes, "unit": "us", **summary(own),
           "baseline": baseline_names(case)[faster], "baseline_median": sides[faster]["median"],
           "speedup": sides[faster]["speedup"], "spread": sides[faster]["spread"]}
    row |= {name: side for name, side in sides.items() if name != "library"}
    if compile_error:
        row["compiled"] = {"failed": compile_error}
    if case.published:
        slower, better = case.published
        row["published"] = {"baseline_median": slower, "median": better, "speedup": rounded(slower / better)}
    if case.bandwidth and not case.chain and case.bytes >= SMALL:
        speed, limit = case.bytes / row["median"] / 1000, bandwidths.gb_per_s(case.bandwidth, case.bytes)
        row |= {"gb_per_s": rounded(speed), "bandwidth": case.bandwidth, "bandwidth_gb_per_s": rounded(limit),
                "share_of_bandwidth": rounded(speed / limit)}
    return judged(case, row)


def judged(case, row):
    """With what the row should reach, and whether it does, which is not known where torch.compile's side failed."""
    share, reached = row.get("share_of_bandwidth", 0), []
    if case.target:
        row["target"] = NEAR_TARGET if case.target == PARITY and share > NEAR else case.target
        reached.append(row["speedup"] >= row["target"])
    if case.share:
        row["target_share"] = case.share
        reached.append(share >= case.share)
    if case.is_limited and share and case.bytes >= LIMITED:
        row["limit_us"] = rounded(LIMIT_US + case.bytes / (LIMIT_SHARE * row["bandwidth_gb_per_s"] * 1000))
        reached.append(row["median"] <= row["limit_us"])
    return row | ({"reached": all(reached)} if reached and "failed" not in row.get("compiled", {}) else {})


def line(row):
    shape = " ".join(f"{key}={value}" for key, value in row["params"].items())
    text = f"{row['name']:28} {shape:32} {row['median']:9.2f} us"
    for side in ("eager", "compiled"):
        if "failed" in row.get(side, {}):
            text += f"  {side} FAILED: {row[side]['failed'][:60]}"
        elif side in row:
            text += f"  {side} {row[side]['median']:9.2f} us x{row[side]['speedup']:5.2f}"
    if "eager" not in row:
        text += f"  {row['baseline']} {row['baseline_median']:9.2f} us x{row['speedup']:5.2f}"
    if "gb_per_s" in row:
        text += f"  {row['gb_per_s']:5.0f} GB/s {100 * row['share_of_bandwidth']:4.0f} %"
    if "limit_us" in row:
        text += f"  limit {row['limit_us']:.1f} us"
    if "reached" in row:
        text += f"  target {row.get('target', '')}: {'ok' if row['reached'] else 'MISSED'}"
    return text


class Record:
    """A family's rows and what failed. It takes over the rows that a record of the same commit and device has."""

    def __init__(self, options, name, family, device):
        self.name, self.family, self.options, self.device = name, family, options, device
        self.cases = list(family.cases())
        self.rows, self.speeds, self.errors = {}, {}, {}
        self.path = pathlib.Path(options.out, f"kernels-{name}.json") if options.out else None
        if self.path and self.path.exists():
            old = json.loads(self.path.read_text(encoding="utf-8"))
            if options.commit and old | self.device | {"commit": options.commit} == old:
                self.rows = {self._key_of_row(row): row for row in old["rows"] if "baseline" in row}
                self.speeds = {(row["name"], row["params"]["bytes"]): row
                               for row in old["rows"] if "baseline" not in row}

    @staticmethod
    def _key_of_row(row):
        name, _, label = row["baseline"].partition(" ")
        return row["name"], json.dumps(row["params"]), label if name in ("torch", "torch.compile") else row["baseline"]

    @staticmethod
    def _key(case):
        return case.name, json.dumps(case.sizes), case.baseline or baseline_names(case)["eager"].partition(" ")[2]

    def add(self, case, row):
        self.rows[self._key(case)] = row

    def is_whole(self, case):
        return "failed" not in self.rows.get(self._key(case), {"compiled": {"failed": ""}}).get("compiled", {})

    def failed(self):
        for case in self.cases:
            row = self.rows.get(self._key(case))
            if row is None:
                yield f"{case}: {self.errors.get(str(case), 'not run')}"
            elif not self.is_whole(case):
                yield f"{case}: torch.compile: {row['compiled']['failed']}"

    def write(self, bandwidths):
        if not self.path:
            return
        for (kind, moved), samples in bandwidths.samples.items():
            self.speeds[KERNELS[kind], moved] = {"name": KERNELS[kind], "params": {"bytes": moved}, "unit": "us",
                                                 **summary(samples)}
        rows = [self.speeds[key] for key in sorted(self.speeds)]
        rows += [self.rows[key] for key in map(self._key, self.cases) if key in self.rows]
        measures = self.family.MEASURES
        record = {"schema": "cgrt-record-1", "program": "kernelbench",
                  "command": f"kernels/bench/bench.py --family {self.name}", "commit": self.options.commit,
                  "measures": MEASURES + [f"kernels/bench/families/{self.name}.py"] + measures + included(measures),
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), **self.device,
                  "simulated": False}
        failed = list(self.failed())
        record |= {"failed": failed} if failed else {}
        lines = ",\n".join("    " + json.dumps(row) for row in rows)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(record, indent=2)[:-2] + ',\n  "rows": [\n' + lines + "\n  ]\n}\n", encoding="utf-8")
        part.replace(self.path)


def run_family(options, name, device, bandwidths, compiler):
    """How many of the rows that were measured miss their targets, and how many cases have failed."""
    family = importlib.import_module(f"families.{name}")
    record = Record(options, name, family, device)
    cases = [case for case in record.cases
             if options.only in case.kernel and not (options.missing and record.is_whole(case))]
    begin = time.monotonic()
    compile_errors = compiler.compile(name, [case for case in cases if case.compiles and not case.baseline])
    print(f"{name}: {len(cases)} cases compiled in {time.monotonic() - begin:.0f} s, {len(compile_errors)} not",
          flush=True)
    missed, failed = 0, 0
    for index, case in enumerate(cases, 1):
        progress = f"{name} {index}/{len(cases)}"
        try:
            row = measured(options.program, family, case, bandwidths, compile_errors.get(str(case), ""))
            record.add(case, row)
            missed += not row.get("reached", True)
            failed += not record.is_whole(case)
            print(f"{progress:20} {line(row)}", flush=True)
        except RuntimeError as error:  # PyTorch's, too
            record.errors[str(case)] = in_short(error)
            failed += 1
            print(f"{progress:20} FAILED {case}: {in_short(error)}", flush=True)
        torch.cuda.empty_cache()  # kernelbench needs memory, too
        record.write(bandwidths)
    print(f"{name}: {len(cases)} cases in {time.monotonic() - begin:.0f} s, {missed} missed, {failed} failed",
          flush=True)
    return missed, failed


def families(text):
    names = text.split(",")
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--out", help="a folder for the records")
    parser.add_argument("--commit", default="")
    parser.add_argument("--family", type=families, action="extend", help="one or more, with commas; all without it")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--missing", action="store_true", help="cases that the record in the folder lacks")
    parser.add_argument("--compile-cache", help="a folder for what torch.compile makes, to be used again")
    options = parser.parse_args()
    use_cache(options.compile_cache)

    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout.split()[0]
    device = {"device": torch.cuda.get_device_name(0), "driver": driver, "cuda": torch.version.cuda}
    bandwidths = Bandwidths(options.program)
    with contextlib.closing(Compiler()) as compiler:
        counts = [run_family(options, name, device, bandwidths, compiler) for name in options.family or FAMILIES]
    missed, failed = map(sum, zip(*counts))
    return 1 if failed else 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
