"""index_select, index_add and scatter_add along the first dimension; indices are int64."""
import torch
from case import DEVICE, SIZES, Case

MEASURES = ["kernels/cgrt_kernels/index", "kernels/bench/index.cpp"]


def case(kernel, type, rows, columns, count, skew=0, fixed=0, index_rows=None, **more):
    # Rows are read and written once each: no more of them than there are indices.
    touched = min(rows, count) * columns * (1 if kernel == "index_select" else 2) + count * columns
    indices = count * (columns if kernel == "scatter_add" else 1)
    sizes = {"rows": rows, "columns": columns, "count": count, "skew": skew, "fixed": fixed,
             "index_rows": index_rows or rows}
    return Case(kernel, type, sizes, touched * SIZES[type] + indices * 8, label=kernel, **more)


def cases():
    for skew in (0, 1):
        yield case("index_add", "float32", 1 << 16, 128, 1 << 20, skew=skew)
        yield case("index_add", "float16", 1 << 16, 128, 1 << 20, skew=skew)
    yield case("index_add", "float32", 1 << 16, 128, 1 << 20, skew=2)
    yield case("index_add", "bfloat16", 1 << 16, 128, 1 << 22)
    for skew in (0, 1, 2):
        yield case("index_add", "float32", 1 << 16, 64, 1 << 16, skew=skew)
        yield case("index_add", "bfloat16", 1 << 14, 64, 1 << 17, skew=skew)
    # Few indices.
    yield case("index_add", "bfloat16", 2015, 282, 132)
    yield case("index_add", "bfloat16", 30000, 1024, 1000, skew=2)
    yield case("index_add", "float16", 128256, 4096, 256, skew=1)
    yield case("index_add", "float32", 1720000, 128, 1 << 21)
    yield case("index_add", "bfloat16", 128256, 4096, 16384, skew=1)
    yield case("index_select", "float32", 1 << 16, 128, 1 << 20)
    yield case("index_select", "float16", 128256, 4096, 16384, skew=1)
    yield case("scatter_add", "float32", 1 << 16, 32, 1 << 18)
    # PyTorch has no other order than any.
    yield case("scatter_add", "float32", 1 << 16, 32, 1 << 18, fixed=1, target=0.0)


def baseline(case):
    rows, columns, count, skew = (case.sizes[name] for name in ("rows", "columns", "count", "skew"))

    def make_set():
        matrix = torch.randn(rows, columns, device=DEVICE, dtype=case.dtype)
        named = torch.randn(count, columns, device=DEVICE, dtype=case.dtype)
        shape = (count, columns) if case.kernel == "scatter_add" else (count,)
        below = case.sizes["index_rows"]
        at = torch.rand(*shape, device=DEVICE, dtype=torch.float64)
        index = ((below ** at - 1) if skew == 1 else at * below).long()
        if skew == 2:
            index[torch.rand(*shape, device=DEVICE) < 0.5] = 0
        return matrix, named, index

    run = {
        "index_add": lambda matrix, named, index: matrix.index_add_(0, index, named),
        "index_select": lambda matrix, named, index: torch.index_select(matrix, 0, index),
        "scatter_add": lambda matrix, named, index: matrix.scatter_add_(0, index, named),
    }[case.kernel]
    return make_set, run
