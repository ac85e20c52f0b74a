"""softmax, log_softmax, layer_norm, rms_norm of each row of a matrix."""
import torch
import torch.nn.functional as F
from bench import Case

MEASURES = ["kernels/cgrt_kernels/rows", "kernels/bench/rows.cpp"]

# rows, columns, and the speedup over PyTorch to reach: softmax, layer_norm, rms_norm, each in float32 and float16
TARGETS = [
    (49152, 1024, (0.98, 1.5), (1.4, 2.0), (1.0, 1.2)),
    (8192, 4096, (1.5, 2.8), (1.3, 1.5), (1.25, 1.2)),
    (4096, 8192, (1.9, 3.3), (1.5, 1.7), (1.4, 1.5)),
    (2048, 32768, (1.4, 1.6), (1.8, 1.6), (1.4, 1.5)),
    (512, 131072, (1.7, 1.9), (2.1, 3.4), (1.6, 2.9)),
]


def case(kernel, type, rows, columns, target=0.0, chain=False):
    size = 4 if type == "float32" else 2
    return Case(kernel, type, {"rows": rows, "columns": columns}, 2 * rows * columns * size, target, chain=chain,
                label=f"F.{kernel}")


def cases():
    for rows, columns, *targets in TARGETS:
        for kernel, (single, half) in zip(("softmax", "layer_norm", "rms_norm"), targets):
            yield case(kernel, "float32", rows, columns, single)
            yield case(kernel, "float16", rows, columns, half)
    for rows, columns in ((8192, 4096), (64, 128256), (8192, 4097)):
        yield case("log_softmax", "float32", rows, columns)
    for rows, columns in ((32768, 1024), (16384, 4096), (16384, 8192), (16384, 32768), (2048, 131072)):
        yield case("rms_norm", "bfloat16", rows, columns)


def peer(case):
    rows, columns = case.sizes["rows"], case.sizes["columns"]
    weight, bias = (torch.randn(columns, device="cuda", dtype=case.dtype) for _ in range(2))
    run = {
        "softmax": lambda x: F.softmax(x, -1),
        "log_softmax": lambda x: F.log_softmax(x, -1),
        "layer_norm": lambda x: F.layer_norm(x, (columns,), weight, bias),
        "rms_norm": lambda x: F.rms_norm(x, (columns,), weight, 1e-5),
    }[case.kernel]
    return lambda: (torch.randn(rows, columns, device="cuda", dtype=case.dtype),), run
