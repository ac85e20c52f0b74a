"""The sides of a row: a kernel of kernelbench, or a function of PyTorch, each as graphs that give samples.

Both work alike (see main.cpp): a sample is one launch of a graph of 20 launches or more, which work in turn on sets of
buffers of 512 MiB or more in all, but at most 64 sets; of a chain 400 launches work on one set, and the sample is the
time that one more costs. PyTorch's launches are captured, compiled or not, so that neither side pays for its host.
"""
import subprocess
import time

import torch

LAUNCHES, CHAIN_LAUNCHES, WORKING_SET, MAX_SETS = 20, 400, 512 << 20, 64
BLOCK = 8  # samples of a side before the next one's turn
MAX_SAMPLES, MIN_SAMPLES, SECONDS = 64, 32, 3.0  # of each side; more than the min only within that time


class Program:
    """A kernel of kernelbench, in a process that holds its buffers and takes samples when asked."""

    def __init__(self, program, kernel, case):
        command = [program, kernel, case.type, *(f"{name}={size}" for name, size in case.sizes.items()), "--paced"]
        command += ["--chain"] if case.chain else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)

    def samples(self, count):
        try:
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended and says why below
        lines = [self.process.stdout.readline() for _ in range(count)]
        if not all(lines):
            raise RuntimeError(self.process.stderr.read().strip() or f"kernelbench: exit {self.process.wait()}")
        return [float(line) for line in lines]

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def set_count(case):
    return 1 if case.chain else min(WORKING_SET // max(case.bytes, 1) + 1, MAX_SETS)


class Captured:
    """A function of PyTorch, captured on sets of tensors. Its results of a chain take the first places of the set."""

    def __init__(self, case, sets, run):
        self.is_chain = case.chain
        self.launches = CHAIN_LAUNCHES if case.chain else max(LAUNCHES, len(sets))
        self.results = [None] * len(sets)  # lives as long as the graphs
        self.many = self._capture(sets, run, self.launches)
        self.one = self._capture(sets, run, 1)
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(3):
            self._time(self.many)

    def _launch(self, sets, run, times):
        if self.is_chain:
            x = sets[0]
            for _ in range(times):
                result = run(*x)
                result = result if isinstance(result, tuple) else (result,)
                x = result + x[len(result):]
            self.results[0] = x
        else:
            for i in range(times):
                self.results[i % len(sets)] = run(*sets[i % len(sets)])

    def _capture(self, sets, run, times):
        self._launch(sets, run, times)  # what loads lazily
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._launch(sets, run, times)
        return graph

    def _time(self, graph):
        self.begin.record()
        graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) * 1000

    def samples(self, count):
        taken = []
        for i in range(-1, count):  # the first finds the device as another process left it
            time = self._time(self.many)
            time = (time - self._time(self.one)) / (self.launches - 1) if self.is_chain else time / self.launches
            if i >= 0:
                taken.append(time)
        return taken

    def close(self):
        del self.many, self.one
        self.results.clear()


def in_turns(sides):
    """Samples of each side, taken in turns, A B C C B A: those at one place of the lists are neighbours."""
    taken = [[] for _ in sides]
    begin = None
    while len(taken[0]) < MAX_SAMPLES and (len(taken[0]) < MIN_SAMPLES or time.monotonic() - begin < SECONDS):
        for at in (*range(len(sides)), *reversed(range(len(sides)))):
            taken[at] += sides[at].samples(BLOCK)
        begin = begin or time.monotonic()  # after the first turns, which wait for kernelbench's buffers
    return taken

