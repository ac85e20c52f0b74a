"""Reductions of arrays, rows and columns; dot."""
import torch
from case import SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/reduce", "kernels/bench/reduce.cpp", "kernels/bench/reduce_cub.cu"]
ROWS = [(49152, 1024), (8192, 4096), (4096, 8192), (2048, 32768), (512, 131072)]


def array(kernel, type, count, inputs=1, **more):
    return Case(kernel, type, {"count": count}, inputs * count * SIZES[type], bandwidth="read", **more)


def matrix(kernel, type, rows, columns, **more):
    moved = rows * columns * SIZES[type]
    return Case(kernel, type, {"rows": rows, "columns": columns}, moved, bandwidth="read", **more)


def cases():
    for type in ("float32", "float16"):
        for count in (1 << 20, 1 << 25, 1 << 28, 1 << 30):
            yield array("reduce_all_sum", type, count, baseline="cub_reduce_sum")
            yield array("reduce_all_sum", type, count, label="sum")
    for type in ("float32", "float16"):
        for rows, columns in ROWS:
            yield matrix("reduce_rows_sum", type, rows, columns, baseline="cub_segmented_sum")
            yield matrix("reduce_rows_sum", type, rows, columns, label="sum(-1)")
    for rows, columns in (ROWS[0], ROWS[2], ROWS[4]):
        yield matrix("reduce_rows_max", "float16", rows, columns, label="amax(-1)")
    yield matrix("reduce_rows_argmax", "float32", 64, 128256, label="argmax(-1)")
    for type in ("float32", "float16"):
        for rows, columns in ((32768, 1024), (4096, 4096)):
            yield matrix("reduce_columns_sum", type, rows, columns, label="sum(0)")
    for type, rows, columns in (("float16", 17, 2097153), ("float32", 64, 262144), ("float16", 4096, 65537)):
        yield matrix("reduce_columns_sum", type, rows, columns, label="sum(0)")
    for count in (1 << 25, 1 << 28):
        yield array("dot", "float16", count, inputs=2, label="dot")


def baseline(case):
    sizes = case.sizes
    shape = (sizes["count"],) if "count" in sizes else (sizes["rows"], sizes["columns"])
    run = {
        "reduce_all_sum": lambda x: x.sum(),
        "reduce_rows_sum": lambda x: x.sum(-1, dtype=torch.float32),  # as ours, where rows are short half of the bytes
        "reduce_rows_max": lambda x: x.amax(-1),
        "reduce_rows_argmax": lambda x: x.argmax(-1),
        "reduce_columns_sum": lambda x: x.sum(0),
        "dot": torch.dot,
    }[case.kernel]
    inputs = 2 if case.kernel == "dot" else 1
    return lambda: tuple(random_tensor(case, *shape) for _ in range(inputs)), run
