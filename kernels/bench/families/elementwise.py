"""Operations on each element of arrays, biases and gates of matrices, and chains as one functor."""
import torch
import torch.nn.functional as F
from case import SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/elementwise", "kernels/bench/elementwise.cpp", "kernels/bench/elementwise_maps.cu",
            "kernels/bench/elementwise_maps.h"]

ARRAYS = {"scale": 2, "add": 3, "mul": 3, "axpy": 3, "relu": 2, "silu": 2, "gelu": 2, "gelu_tanh": 2, "four_ops": 2}


def arrays(kernel, type, count, shift=0, **more):
    moved = 6 if kernel == "cast" else ARRAYS[kernel] * SIZES[type]
    return Case(kernel, type, {"count": count} | ({"shift": shift} if shift else {}), moved * count, **more)


def matrix(kernel, type, rows, columns, **more):
    moved = 3 if kernel.endswith("_and_mul") else 2
    return Case(kernel, type, {"rows": rows, "columns": columns}, moved * rows * columns * SIZES[type], **more)


def cases():
    for count in (1 << 25, 1 << 28):
        for type in ("float32", "float16", "bfloat16"):
            yield arrays("mul", type, count)
    yield arrays("mul", "float32", 1 << 25, baseline="mul_naive")
    yield arrays("mul", "float16", 1 << 25, baseline="mul_naive")
    yield arrays("add", "bfloat16", 1 << 25)
    yield arrays("add", "float64", 1 << 25)
    for type in ("float32", "float16"):
        yield arrays("mul", type, (1 << 20) + 3)
        yield arrays("mul", type, 1 << 25, shift=1)
        yield arrays("mul", type, 1 << 16, chain=True)
        yield arrays("mul", type, (1 << 16) + 3, chain=True)
        yield arrays("four_ops", type, 1 << 25)
        yield arrays("gelu", type, 1 << 25)
        yield arrays("cast", type, 1 << 25)
    yield arrays("silu", "float16", 1 << 25)
    yield arrays("gelu_tanh", "float16", 1 << 25)
    yield matrix("add_per_column", "float16", 8192, 4096)
    yield matrix("mul_per_row", "float32", 8192, 4096)
    yield matrix("add_per_column", "float16", 8192, 4097)
    # Eager PyTorch takes two operations, which move five arrays where one gate moves three.
    for rows in (1, 16, 256, 8192):
        yield matrix("silu_and_mul", "float16", rows, 14336, chain=rows <= 16)
    yield matrix("silu_and_mul", "bfloat16", 8192, 14336)


def gate(x, values):
    # A chain's result takes the gate's place; the values stay.
    return F.silu(x) * values


def baseline(case):
    if "rows" in case.sizes:
        rows, columns = case.sizes["rows"], case.sizes["columns"]
        many = lambda *shape: random_tensor(case, *shape)
        return {
            "silu_and_mul": (lambda: (many(rows, columns), many(rows, columns)), gate),
            "add_per_column": (lambda: (many(rows, columns), many(columns)), torch.add),
            "mul_per_row": (lambda: (many(rows, columns), many(rows, 1)), torch.mul),
        }[case.kernel]
    one = lambda: random_tensor(case, case.sizes["count"])
    other = torch.float16 if case.type == "float32" else torch.float32
    run = {
        "mul": torch.mul, "add": torch.add,
        "silu": F.silu, "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "cast": lambda x: x.to(other),
        "four_ops": lambda x: F.relu(x * 1.5 + 0.25) * 0.75,
    }[case.kernel]
    return (lambda: tuple(one() for _ in range(ARRAYS.get(case.kernel, 2) - 1))), run
