"""Dropout with a mask of bits, and its gradient; PyTorch's mask has a byte for each element."""
import torch
from case import SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/dropout", "kernels/bench/dropout.cpp"]
PROBABILITY = 0.1  # as in dropout.cpp
FORWARD, BACKWARD = "dropout", "dropout_backward"
aten = torch.ops.aten


def case(kernel, type, count, shift=0):
    sizes = {"count": count} | ({"shift": shift} if shift else {})
    return Case(kernel, type, sizes, 2 * count * SIZES[type] + (count + 7) // 8,
                label="aten.native_dropout" if kernel == FORWARD else "aten.native_dropout_backward")


def cases():
    for kernel in (FORWARD, BACKWARD):
        for type in ("float32", "float16", "bfloat16"):
            for count in (1 << 16, 1 << 22, 1 << 25, 1 << 28):
                yield case(kernel, type, count)
        yield case(kernel, "float16", (1 << 25) + 3)
        yield case(kernel, "float16", 1 << 25, shift=1)


def baseline(case):
    count = case.sizes["count"]

    def forward(x):
        return aten.native_dropout(x, PROBABILITY, True)

    def backward(dy, mask):
        return aten.native_dropout_backward(dy, mask, 1 / (1 - PROBABILITY))

    def make_set():
        x = random_tensor(case, count)
        return (x,) if case.kernel == FORWARD else (x, forward(x)[1])

    return make_set, forward if case.kernel == FORWARD else backward
