"""Softmax of attention scores, scaled and masked, against PyTorch's three operations."""
import torch
import torch.nn.functional as F
from bench import Case

MEASURES = ["kernels/cgrt_kernels/masked_softmax", "kernels/bench/masked_softmax.cpp"]


def case(type, matrices, rows, columns, masks, causal=0, target=0.0):
    size = 4 if type == "float32" else 2
    moved = (2 * matrices + masks) * rows * columns
    if causal:  # what is masked is not read
        moved -= matrices * rows * (rows - 1) // 2
    return Case("masked_softmax", type, {"matrices": matrices, "rows": rows, "columns": columns, "masks": masks,
                                         "causal": causal}, moved * size, target, label="softmax(x * scale + mask)")


def cases():
    for type in ("float32", "float16", "bfloat16"):
        yield case(type, 64, 1024, 1024, 2, target=2.5)
    for type in ("float32", "float16"):
        yield case(type, 512, 384, 384, 32, target=2.5)
        yield case(type, 16, 2048, 2048, 1, target=2.5)
        yield case(type, 4, 4096, 4096, 1, target=2.5)
        yield case(type, 64, 1024, 1024, 0, causal=1, target=2.5)
        yield case(type, 16, 1000, 1001, 1)


def peer(case):
    matrices, rows, columns, masks, causal = case.sizes.values()
    allowed = torch.ones(rows, columns, device="cuda", dtype=torch.bool).tril(columns - rows)
    hidden = torch.zeros(rows, columns, device="cuda", dtype=case.dtype).masked_fill(~allowed, float("-inf"))

    def make_set():
        x = torch.randn(max(masks, 1), matrices // max(masks, 1), rows, columns, device="cuda", dtype=case.dtype)
        return x, hidden if causal else torch.randn(masks, 1, rows, columns, device="cuda", dtype=case.dtype)

    return make_set, lambda x, mask: F.softmax(x * 0.125 + mask, -1)
