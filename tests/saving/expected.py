"""What a framework gives for its graphs, as files that check.py compares with `graphdump play`.

    PROGRAM FOLDER [--serve]

writes for each graph GRAPH and each of its outputs OUTPUT and inputs INPUT:

    GRAPH.OUTPUT.once      after the first replay
    GRAPH.OUTPUT.repeated  after `replays` in all
    GRAPH.INPUT.new        another input
    GRAPH.OUTPUT.new       after one replay from the first state, with the new inputs
    report.json            the seconds from the process's start to the end of the first replay, whose clock times
                           replays, and for each graph the number of replays, the names of its inputs and outputs,
                           and the bytes of its weights, state and inputs

With --serve it then answers each line that it reads, GRAPH COUNT LIBRARY BUNDLE NAME, with times of replays in
microseconds: of the graph NAME of the bundle, which is loaded beside the framework by the library that beside.cpp is
built as, and of the framework's, in turn. As JSON: pairs of single replays, and pairs of COUNT with nothing between them.
Times are those of events; JAX's are the host's.
"""
import ctypes
import dataclasses
import json
import os
import sys
import time
from typing import Any, Callable


@dataclasses.dataclass
class Graph:
    name: str
    replay: Callable[[], Any]
    inputs: dict
    new: dict  # for the inputs
    outputs: dict
    state: list = dataclasses.field(default_factory=list)  # tensors that a replay reads and writes
    weights: list = dataclasses.field(default_factory=list)  # tensors that it only reads; none: not told
    replays: int = 3


def seconds_since_start():
    with open("/proc/self/stat") as file:
        started = int(file.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


class Torch:
    """Tensors and events of PyTorch; CuPy and JAX below."""

    clock = "events"

    def __init__(self):
        import torch

        self.torch = torch
        self.synchronize = torch.cuda.synchronize

    def clone(self, tensor):
        return tensor.detach().clone()

    def assign(self, tensor, other):
        tensor.detach().copy_(other)

    def to_bytes(self, tensor):
        return tensor.detach().contiguous().reshape(-1).view(self.torch.uint8).cpu().numpy().tobytes()

    def microseconds(self, replay, count):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3 / count


class Cupy:
    clock = "events"

    def __init__(self, stream):
        import cupy

        self.cupy = cupy
        self.stream = stream
        self.synchronize = stream.synchronize

    def clone(self, array):
        with self.stream:
            return array.copy()

    def assign(self, array, other):
        with self.stream:
            array[...] = other

    def to_bytes(self, array):
        return self.cupy.asnumpy(array).tobytes()

    def microseconds(self, replay, count):
        start, end = (self.cupy.cuda.Event() for _ in range(2))
        start.record(self.stream)
        for _ in range(count):
            replay()
        end.record(self.stream)
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, end) * 1e3 / count


class Jax:
    """Arrays do not change: a tensor is a list of one. Copies, because a call may take its array's memory."""

    clock = "host"

    def synchronize(self):
        pass

    def clone(self, tensor):
        return [tensor[0].copy()]

    def assign(self, tensor, other):
        tensor[0] = other[0].copy()

    def to_bytes(self, tensor):
        import numpy

        return numpy.asarray(tensor[0]).tobytes()

    def microseconds(self, replay, count):
        start = time.perf_counter()
        for _ in range(count):
            replay()
        return (time.perf_counter() - start) * 1e6 / count


def write(graphs, framework, then=None):
    """Called when all graphs are captured and none was replayed. A graph begins with what those before it left. `then`
    is called with the folder before times are asked for."""
    folder = sys.argv[1]
    if os.path.exists(f"{folder}/report.json"):
        folder += ".again"  # the second run of `graphdump save --movable`, of which the bundle has only addresses
    os.makedirs(folder, exist_ok=True)

    def save(graph, kind):
        framework.synchronize()
        for name, tensor in graph.outputs.items():
            with open(f"{folder}/{graph.name}.{name}.{kind}", "wb") as file:
                file.write(framework.to_bytes(tensor))

    report = {"clock": framework.clock, "graphs": {}}
    reset = {}
    for graph in graphs:
        first = [framework.clone(tensor) for tensor in [*graph.inputs.values(), *graph.state]]

        def restore(graph=graph, first=first):
            for tensor, value in zip([*graph.inputs.values(), *graph.state], first):
                framework.assign(tensor, value)
            framework.synchronize()

        reset[graph.name] = restore
        graph.replay()
        framework.synchronize()
        report.setdefault("start_s", seconds_since_start())
        save(graph, "once")
        for _ in range(graph.replays - 1):
            graph.replay()
        save(graph, "repeated")
        restore()
        for name, value in graph.new.items():
            framework.assign(graph.inputs[name], value)
            with open(f"{folder}/{graph.name}.{name}.new", "wb") as file:
                file.write(framework.to_bytes(value))
        graph.replay()
        save(graph, "new")
        report["graphs"][graph.name] = {
            "replays": graph.replays,
            "inputs": list(graph.new),
            "outputs": list(graph.outputs),
        }
        if graph.weights:
            read = [*graph.weights, *graph.state, *graph.inputs.values()]
            report["graphs"][graph.name]["read_bytes"] = sum(tensor.nbytes for tensor in read)
    with open(f"{folder}/report.json", "w") as file:
        json.dump(report, file)
    if then is not None:
        then(folder)
    print("ready", flush=True)
    if "--serve" in sys.argv[2:]:
        serve({graph.name: graph.replay for graph in graphs}, reset, framework)


class Beside:
    """A graph of a bundle in this process."""

    def __init__(self, library, bundle, name, clock):
        self.library, self.by_host = ctypes.CDLL(library), int(clock == "host")
        self.library.load_graph.restype = ctypes.c_void_p
        self.library.replay_microseconds.restype = ctypes.c_double
        self.graph = ctypes.c_void_p(self.library.load_graph(bundle.encode(), name.encode()))
        if not self.graph:
            raise RuntimeError(f"{bundle} cannot be loaded beside the framework")

    def reset(self):
        if not self.library.restore_graph(self.graph):
            raise RuntimeError("the bundle's memory cannot be restored")

    def microseconds(self, count):
        return self.library.replay_microseconds(self.graph, count, self.by_host)


def pairs_in_turn(own, peer, count):
    """Pairs of `own` and `peer`, that go first in turn."""
    pairs = []
    for i in range(count):
        if i % 2 == 0:
            first = own()
            pairs.append((first, peer()))
        else:
            second = peer()
            pairs.append((own(), second))
    return pairs


def serve(replays, reset, framework):
    for line in sys.stdin:
        name, count, *beside = line.split()
        replay, count, own = replays[name], int(count), Beside(*beside, framework.clock)

        def own_in_row():
            own.reset()
            return own.microseconds(count)

        def peer_in_row():
            reset[name]()
            return framework.microseconds(replay, count)

        own.reset()
        reset[name]()
        single = pairs_in_turn(lambda: own.microseconds(1), lambda: framework.microseconds(replay, 1), 101)
        rows = pairs_in_turn(own_in_row, peer_in_row, 16)
        print(json.dumps([single, rows]), flush=True)
