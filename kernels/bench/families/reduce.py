"""Reductions of arrays, rows and columns; dot."""
import torch
from bench import Case

MEASURES = ["kernels/cgrt_kernels/reduce", "kernels/bench/reduce.cpp", "kernels/bench/reduce_cub.cu"]
SIZE = {"float32": 4, "float16": 2, "bfloat16": 2}
ROWS = [(49152, 1024), (8192, 4096), (4096, 8192), (2048, 32768), (512, 131072)]


def array(kernel, type, count, target=0.0, inputs=1, **more):
    return Case(kernel, type, {"count": count}, inputs * count * SIZE[type], target, ceiling="read", **more)


def matrix(kernel, type, rows, columns, target, label):
    return Case(kernel, type, {"rows": rows, "columns": columns}, rows * columns * SIZE[type], target, ceiling="read",
                label=label)


def cases():
    for type, target in (("float32", 1.03), ("float16", 1.12)):
        for count in (1 << 20, 1 << 25, 1 << 28):
            yield array("reduce_all_sum", type, count, 1.0, peer="cub_reduce_sum")
            yield array("reduce_all_sum", type, count, target, label="sum")
    for type in ("float32", "float16"):
        for rows, columns in ROWS:
            yield matrix("reduce_rows_sum", type, rows, columns, 1.15, "sum(-1)")
    for rows, columns in (ROWS[0], ROWS[2], ROWS[4]):
        yield matrix("reduce_rows_max", "float16", rows, columns, 1.15, "amax(-1)")
    yield matrix("reduce_rows_argmax", "float32", 64, 128256, 0.0, "argmax(-1)")
    for type in ("float32", "float16"):
        for rows, columns in ((32768, 1024), (4096, 4096)):
            yield matrix("reduce_columns_sum", type, rows, columns, 1.0, "sum(0)")
    yield array("dot", "float16", 1 << 25, 1.2, inputs=2, label="dot")
    yield array("dot", "float16", 1 << 28, 1.2, inputs=2, label="dot")


def peer(case):
    sizes = case.sizes
    shape = (sizes["count"],) if "count" in sizes else (sizes["rows"], sizes["columns"])
    run = {
        "reduce_all_sum": lambda x: x.sum(),
        "reduce_rows_sum": lambda x: x.sum(-1),
        "reduce_rows_max": lambda x: x.amax(-1),
        "reduce_rows_argmax": lambda x: x.argmax(-1),
        "reduce_columns_sum": lambda x: x.sum(0),
        "dot": torch.dot,
    }[case.kernel]
    inputs = 2 if case.kernel == "dot" else 1
    return lambda: tuple(torch.randn(shape, device="cuda", dtype=case.dtype) for _ in range(inputs)), run
