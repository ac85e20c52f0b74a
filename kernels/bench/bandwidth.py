"""The measured bandwidth: GB/s of plain kernels at about as many bytes as a row moves."""
import contextlib
import math
import statistics

import torch
from case import DEVICE, Case
from sides import BLOCK, Captured, Program, set_count

# Reading and writing: PyTorch's multiplication, which is faster than the driver's copies.
KERNELS = {"copy": "torch_mul_float32", "read": "read_only", "write_four": "write_four"}


class Bandwidths:
    """Each size is measured once, rounded to a power of the root of two, with buffers in turn as a row has them: a
    pass over more bytes is faster."""

    def __init__(self, program):
        self.program = program
        self.samples = {}  # of a kind and a number of bytes: microseconds

    def gb_per_s(self, kind, moved):
        at = int(2 ** (round(2 * math.log2(moved)) / 2)) // 1280 * 1280  # whole packs of each array
        if (kind, at) not in self.samples:
            self.samples[kind, at] = self._measure(kind, at)
        return at / statistics.median(self.samples[kind, at]) / 1000

    def _measure(self, kind, moved):
        if kind == "copy":
            case = Case("mul", "float32", {}, moved)
            sets = [(torch.randn(moved // 8, device=DEVICE),) for _ in range(set_count(case))]
            side = Captured(case, sets, lambda x: torch.mul(x, 1.5))
        else:
            read = moved // 5 if kind == "write_four" else moved
            side = Program(self.program, KERNELS[kind], Case(KERNELS[kind], "float32", {"bytes": read}, moved))
        with contextlib.closing(side):
            return side.samples(BLOCK) + side.samples(BLOCK)
