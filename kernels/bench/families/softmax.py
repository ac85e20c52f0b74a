"""softmax and log_softmax of each row of a matrix and their gradients, and softmax of masked attention scores."""
import torch
import torch.nn.functional as F
from case import DEVICE, SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/softmax", "kernels/bench/softmax.cpp"]
SHAPES = [(49152, 1024), (8192, 4096), (4096, 8192), (2048, 32768), (512, 131072)]
aten = torch.ops.aten
LABELS = {"softmax": "F.softmax", "log_softmax": "F.log_softmax", "softmax_backward": "aten._softmax_backward_data",
          "log_softmax_backward": "aten._log_softmax_backward_data"}


def case(kernel, type, rows, columns, shift=0, **more):
    arrays = 3 if kernel.endswith("backward") else 2
    sizes = {"rows": rows, "columns": columns} | ({"shift": shift} if shift else {})
    return Case(kernel, type, sizes, arrays * rows * columns * SIZES[type], label=LABELS[kernel], **more)


def masked(type, matrices, rows, columns, masks, causal=0):
    moved = (2 * matrices + masks) * rows * columns
    if causal:  # what is masked is not read
        moved -= matrices * rows * (rows - 1) // 2
    return Case("masked_softmax", type, {"matrices": matrices, "rows": rows, "columns": columns, "masks": masks,
                                         "causal": causal}, moved * SIZES[type], label="softmax(x * scale + mask)")


def cases():
    for rows, columns in SHAPES:
        for type in ("float32", "float16"):
            yield case("softmax", type, rows, columns)
    for rows, columns in ((8192, 4096), (64, 128256), (8192, 4097)):
        yield case("log_softmax", "float32", rows, columns)
    for rows, columns in SHAPES[:4]:
        for type in ("float32", "float16"):
            yield case("softmax_backward", type, rows, columns)
    yield case("log_softmax_backward", "float32", 8192, 4096)
    yield case("softmax_backward", "float32", 8192, 4097)
    for type in ("float32", "float16", "bfloat16"):
        yield masked(type, 64, 1024, 1024, 2)
    for type in ("float32", "float16"):
        yield masked(type, 512, 384, 384, 32)
        yield masked(type, 16, 2048, 2048, 1)
        yield masked(type, 4, 4096, 4096, 1)
        yield masked(type, 64, 1024, 1024, 0, causal=1)
        yield masked(type, 16, 1000, 1001, 1)


def masked_baseline(case):
    matrices, rows, columns, masks, causal = (case.sizes[name] for name in
                                              ("matrices", "rows", "columns", "masks", "causal"))
    allowed = torch.ones(rows, columns, device=DEVICE, dtype=torch.bool).tril(columns - rows)
    hidden = torch.zeros(rows, columns, device=DEVICE, dtype=case.dtype).masked_fill(~allowed, float("-inf"))

    def make_set():
        x = random_tensor(case, max(masks, 1), matrices // max(masks, 1), rows, columns)
        return x, hidden if causal else random_tensor(case, masks, 1, rows, columns)

    def computed(x, mask):  # the mask is no array
        row, column = (torch.arange(n, device=DEVICE) for n in (rows, columns))
        return F.softmax(torch.where(column <= row[:, None] + (columns - rows), x * 0.125, float("-inf")), -1)

    added = lambda x, mask: F.softmax(x * 0.125 + mask, -1)
    return make_set, added, computed if causal else added


def baseline(case):
    if case.kernel == "masked_softmax":
        return masked_baseline(case)
    shape, dtype = (case.sizes["rows"], case.sizes["columns"]), case.dtype
    if case.kernel == "softmax":
        return lambda: (random_tensor(case, *shape),), lambda x: F.softmax(x, -1)
    if case.kernel == "log_softmax":
        return lambda: (random_tensor(case, *shape),), lambda x: F.log_softmax(x, -1)
    # torch.compile has these two as expressions, which it fuses.
    forward, backward = {
        "softmax_backward": (aten._softmax.out, aten._softmax_backward_data),
        "log_softmax_backward": (aten._log_softmax.out, aten._log_softmax_backward_data),
    }[case.kernel]

    def make_set():
        y = random_tensor(case, *shape)
        forward(y.clone(), -1, False, out=y)
        return random_tensor(case, *shape), y

    return make_set, lambda dy, y: backward(dy, y, -1, dtype)
