"""layer_norm and rms_norm of a sum with a residual, against PyTorch's two operations."""
import torch
import torch.nn.functional as F
from bench import Case

MEASURES = ["kernels/cgrt_kernels/add_norm", "kernels/bench/add_norm.cpp"]


def case(kernel, type, rows, columns, target=0.0, chain=False):
    size = 4 if type == "float32" else 2
    return Case(kernel, type, {"rows": rows, "columns": columns}, 4 * rows * columns * size, target, chain=chain,
                label=f"add, F.{kernel[4:]}")


def cases():
    for rows, columns in ((49152, 1024), (8192, 4096), (4096, 8192), (2048, 32768)):
        for type in ("float32", "float16"):
            yield case("add_rms_norm", type, rows, columns, 1.75)
    for type in ("float32", "float16"):
        yield case("add_layer_norm", type, 8192, 4096, 1.75)
    yield case("add_rms_norm", "bfloat16", 16384, 8192, 1.75)


def peer(case):
    rows, columns = case.sizes["rows"], case.sizes["columns"]
    weight, bias = (torch.randn(columns, device="cuda", dtype=case.dtype) for _ in range(2))
    run = {
        "add_rms_norm": lambda x, residual: F.rms_norm(x + residual, (columns,), weight, 1e-5),
        "add_layer_norm": lambda x, residual: F.layer_norm(x + residual, (columns,), weight, bias),
    }[case.kernel]
    return lambda: tuple(torch.randn(rows, columns, device="cuda", dtype=case.dtype) for _ in range(2)), run
