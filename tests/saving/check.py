"""Saves the graphs of frameworks' programs with `graphdump save` and replays them with `graphdump play`.

    python3 check.py --graphdump BUILD/tools/graphdump/graphdump --two-graphs BUILD/tests/two_graphs
                     --beside BUILD/tests/libbeside.so [PROGRAM...]

Each program runs under `graphdump save`, which makes a bundle, and alone, for its times. What `play` gives for the saved
input, after many replays and for another input is compared bit by bit with what the program has written. Replays are
timed in turn with the framework's, in its process, with events. Fails when anything differs, or takes longer than it
should: from the start of the process to the end of the first replay at most 0.5 s + bytes / (8 GB/s), a replay at most
1.02 of the framework's. Then each bundle is loaded at other addresses, beside PyTorch twice, and shrunk and compared
again.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = ["encoder", "decoder", "convolution", "compiled", "training", "decode", "two_graphs", "dropout",
            "chain_cupy", "updated_cupy", "jitted"]
QUICK = ["encoder", "decode", "chain_cupy"]
# JAX chooses kernels by measuring them, so that each run may have others, but for what it finds in its cache.
CACHE = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
LOAD_SECONDS, LOAD_BYTES_PER_SECOND, REPLAY_RATIO, KEPT_RATIO = 0.5, 8e9, 1.02, 1.05
LOADS = 3


class Checks:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, what, holds, detail=""):
        self.count += 1
        self.failed += not holds
        print(f"{'ok    ' if holds else 'FAILED'} {what}{': ' + detail if detail else ''}", flush=True)
        return holds


class Bundle:
    def __init__(self, path):
        self.path = path
        with open(os.path.join(path, "manifest.json")) as file:
            self.manifest = json.load(file)
        self.bytes = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path)
                         for name in names)
        self.graphs = self.manifest["graphs"]

    def kept_bytes(self, graph):
        """Of memory with content."""
        return sum(piece["range"][2] for piece in graph["memory"] if "hash" in piece)

    def graphs_of(self, told):
        """Those with the inputs and outputs that the program has told of one of its graphs."""
        def named(graph, kind):
            return {buffer["name"] for buffer in graph.get(kind, [])}
        return [graph for graph in self.graphs
                if named(graph, "inputs") >= set(told["inputs"]) and named(graph, "outputs") >= set(told["outputs"])]


class Programs:
    def __init__(self, graphdump, folder):
        self.graphdump, self.folder = graphdump, folder

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def command(self, program, kind):
        return [sys.executable, os.path.join(HERE, program + ".py"), self.path(f"{program}.{kind}")]

    def run(self, *arguments, timeout=120):
        """Of graphdump: whether it succeeded, and all it printed."""
        try:
            done = subprocess.run([self.graphdump, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=timeout, text=True, errors="replace")
        except subprocess.TimeoutExpired as late:
            return False, f"no end after {timeout} s\n{late.stdout or ''}"
        return done.returncode == 0, done.stdout

    def save(self, program):
        """In two runs, so that the bundle can be loaded at other addresses. What is expected is of the first."""
        if program == "jitted":
            subprocess.run(self.command(program, "first"), stdout=subprocess.DEVNULL, check=True)  # fills the cache
        start = time.monotonic()
        shutil.rmtree(self.path(program + ".saved"), ignore_errors=True)
        bundle = self.path(program + ".bundle")
        done = self.run("save", "--movable", "-o", bundle, "--", *self.command(program, "saved"), timeout=300)
        return *done, time.monotonic() - start

    def serve(self, program):
        shutil.rmtree(self.path(program + ".alone"), ignore_errors=True)
        log = open(self.path(program + ".log"), "w")
        process = subprocess.Popen([*self.command(program, "alone"), "--serve"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=log, text=True)
        for line in process.stdout:
            if line == "ready\n":
                return process
        raise RuntimeError(f"{program}.py ended with status {process.wait()}: see {log.name}")

    def play(self, bundle, graph, *arguments):
        return self.run("play", bundle.path, "--graph", graph, *arguments)


def same_bytes(path, other):
    with open(path, "rb") as one, open(other, "rb") as two:
        first, second = one.read(), two.read()
    differ = sum(a != b for a, b in zip(first, second)) + abs(len(first) - len(second)) if first != second else 0
    return differ == 0, f"{differ} of {len(first)} bytes differ" if differ else f"{len(first)} bytes are equal"


def notes_of(text):
    return " | ".join(line.removeprefix("graphdump: ") for line in text.splitlines() if line.startswith("graphdump: "))


def last_lines(text, count=6):
    return " | ".join(text.strip().splitlines()[-count:])


def label_of(program, name):
    return program if name in program else f"{program}, {name}"


def number(pattern, text):
    found = re.search(pattern, text)
    return float(found.group(1)) if found else float("nan")


def check_outputs(checks, programs, program, bundle, graph, name, told, label):
    """What `play` gives for `graph` of the bundle against what the process that was saved gave for its graph `name`."""
    def compare(kind, what, *arguments):
        folder = programs.path(program + ".played")
        os.makedirs(folder, exist_ok=True)
        outputs = [f"--output={output}={folder}/{name}.{output}.{kind}" for output in told["outputs"]]
        played, text = programs.play(bundle, graph, *arguments, *outputs)
        if not checks.check(f"{label} {what}", played, "" if played else last_lines(text)):
            return text
        for output in told["outputs"]:
            file = f"{name}.{output}.{kind}"
            checks.check(f"{label} {what}, {output} is the framework's",
                         *same_bytes(os.path.join(folder, file), programs.path(f"{program}.saved", file)))
        return text

    text = compare("once", "replayed once gives all memory recorded")
    if told["replays"] > 1:
        compare("repeated", f"replayed {told['replays']} times", "--repeat", str(told["replays"]))
    if told["inputs"]:
        inputs = [f"--input={one}={programs.path(f'{program}.saved', f'{name}.{one}.new')}" for one in told["inputs"]]
        compare("new", "replayed with another input", *inputs)
    return text


def check_moved(checks, programs, program, bundle, library):
    """At other addresses, and two copies in a process of PyTorch."""
    reasons = [graph.get("why_not_movable", "") for graph in bundle.graphs if not graph.get("movable")]
    if not checks.check(f"{program}: can be moved", not reasons, " | ".join(reasons)):
        return
    played, text = programs.run("play", "--anywhere", bundle.path)
    checks.check(f"{program}: at other addresses gives all memory recorded", played, last_lines(text, 4))
    done = subprocess.run([sys.executable, os.path.join(HERE, "beside.py"), library, bundle.path], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    checks.check(f"{program}: two copies beside PyTorch", done.returncode == 0, last_lines(done.stdout, 2))


def check_shrunk(checks, programs, program, report):
    """After `graphdump shrink`, which replaces the bundle."""
    path = programs.path(program + ".bundle")
    before = Bundle(path)
    start = time.monotonic()
    shrunk, text = programs.run("shrink", path, timeout=200)
    seconds = time.monotonic() - start
    bundle = Bundle(path)
    if not checks.check(f"{program}: shrunk", shrunk, f"{before.bytes / 1e6:.1f} MB to {bundle.bytes / 1e6:.1f} MB in "
                        f"{seconds:.1f} s" if shrunk else last_lines(text)):
        return
    verified, text = programs.run("verify", path)
    checks.check(f"{program}: verified after it", verified, last_lines(text))
    for name, told in report["graphs"].items():
        for graph in bundle.graphs_of(told):
            label = label_of(program, name) + ", shrunk,"
            check_outputs(checks, programs, program, bundle, graph["name"], name, told, label)
            if "read_bytes" in told:
                kept, limit = bundle.kept_bytes(graph), KEPT_RATIO * told["read_bytes"]
                checks.check(f"{label} keeps {kept / 1e6:.2f} MB", kept <= limit,
                             f"at most {limit / 1e6:.2f} MB, {KEPT_RATIO} of its weights, state and inputs")


def seconds_to_first_replay(programs, bundle, graph):
    texts = [programs.play(bundle, graph, "--no-check")[1] for _ in range(LOADS)]
    return statistics.median(number(r"first replay ended ([\d.]+) ms", text) for text in texts) / 1e3


def ask(server, *words):
    server.stdin.write(" ".join(map(str, words)) + "\n")
    server.stdin.flush()
    return server.stdout.readline()


def measure(bundle, graph, server, name, count, library):
    """Single replays and replays in a row, in pairs: the bundle's and the framework's, both in its process."""
    answer = ask(server, name, count, library, bundle.path, graph)
    if not answer.startswith("["):
        raise RuntimeError("the bundle was not timed beside the framework: see its .log")
    return json.loads(answer)


def check_graph(checks, programs, program, bundle, name, told, server, loads, library):
    """The graph `name` of the program; a row of the table, if it could be measured."""
    label = label_of(program, name)
    found = bundle.graphs_of(told)
    if not checks.check(f"{label} is in the bundle with its names", len(found) == 1,
                        ", ".join(graph["name"] for graph in found)):
        return []
    graph = found[0]
    text = check_outputs(checks, programs, program, bundle, graph["name"], name, told, label)
    if graph.get("changed_outside") or program == "dropout":
        checks.check(f"{label} has memory that changes outside the graph, and play warns",
                     bool(graph.get("changed_outside")) and "warning" in text.lower())
    count = max(50, told["replays"])
    try:
        kinds = measure(bundle, graph["name"], server, name, count, library)
    except (RuntimeError, ValueError) as error:
        checks.check(f"{label} measured", False, str(error))
        return []
    with open(programs.path(f"{program}.alone", "report.json")) as file:
        alone = json.load(file)
    load, limit = loads[graph["name"]], LOAD_SECONDS + bundle.bytes / LOAD_BYTES_PER_SECOND
    checks.check(f"{label} replayed {load:.2f} s after the start", load <= limit,
                 f"at most {limit:.2f} s; the framework {alone['start_s']:.1f} s")
    single, in_row = (statistics.median(own / peer for own, peer in pairs) for pairs in kinds)
    checks.check(f"{label} takes {single:.3f} of the framework's replay, {in_row:.3f} in a row",
                 max(single, in_row) <= REPLAY_RATIO)
    times = [f"{statistics.median(pair[side] for pair in pairs):.1f}" for pairs in kinds for side in (0, 1)]
    return [[label, f"{bundle.bytes / 1e6:.1f}", str(len(bundle.manifest["modules"])), f"{load:.2f}", f"{limit:.2f}",
             f"{alone['start_s']:.1f}", *times[:2], f"{single:.3f}", *times[2:], f"{in_row:.3f}", alone["clock"]]]


def check_program(checks, programs, program, save, options):
    done, text, seconds = save
    path = programs.path(program + ".bundle")
    if not checks.check(f"{program}: saved", done and os.path.exists(os.path.join(path, "manifest.json")),
                        f"{seconds:.1f} s; {notes_of(text) if done else last_lines(text)}"):
        return []
    bundle = Bundle(path)
    verified, text = programs.run("verify", path)
    checks.check(f"{program}: verified", verified, last_lines(text))
    played, text = programs.run("play", path)
    checks.check(f"{program}: each graph of the bundle gives all memory recorded", played, last_lines(text, 4))
    with open(programs.path(f"{program}.saved", "report.json")) as file:
        report = json.load(file)
    # Before the framework's process holds the device, which spares 0.1 s of cuInit.
    loads = {graph["name"]: seconds_to_first_replay(programs, bundle, graph["name"]) for graph in bundle.graphs}
    try:
        server = programs.serve(program)
    except RuntimeError as error:
        checks.check(f"{program}: runs alone", False, str(error))
        return []
    rows = []
    for name, told in report["graphs"].items():
        rows += check_graph(checks, programs, program, bundle, name, told, server, loads, options.beside)
    server.stdin.close()
    server.wait()
    if program == "two_graphs" and options.two_graphs:
        done = subprocess.run([options.two_graphs, path, programs.path("two_graphs.saved"), "100"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        checks.check("two_graphs, prefill and then decode in one process", done.returncode == 0,
                     last_lines(done.stdout))
    check_moved(checks, programs, program, bundle, options.beside)
    check_shrunk(checks, programs, program, report)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--graphdump", required=True)
    parser.add_argument("--two-graphs", help="the program of two_graphs.cpp")
    parser.add_argument("--beside", required=True, help="the library of beside.cpp")
    parser.add_argument("--folder", default="/tmp/saving")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    chosen = options.programs or (QUICK if options.quick else PROGRAMS)
    os.makedirs(options.folder, exist_ok=True)
    os.environ.update(CACHE, JAX_COMPILATION_CACHE_DIR=os.path.join(options.folder, "jax_cache"))
    programs, checks, rows = Programs(options.graphdump, options.folder), Checks(), []

    with concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:
        saves = dict(zip(chosen, pool.map(programs.save, chosen)))
    for program in chosen:
        rows += check_program(checks, programs, program, saves[program], options)

    print()
    head = ["graph", "bundle MB", "modules", "first replay s", "at most s", "framework s", "replay us", "framework us",
            "ratio", "in a row us", "framework us", "ratio", "clock"]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(text.ljust(width) if column == 0 else text.rjust(width)
                        for column, (text, width) in enumerate(zip(row, widths))))
    print(f"\n{checks.count} checks, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
