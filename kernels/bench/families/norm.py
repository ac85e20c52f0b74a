"""layer_norm and rms_norm of each row of a matrix, also of a sum with a residual, and their gradients."""
import torch
import torch.nn.functional as F
from case import SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/norm", "kernels/bench/norm.cpp"]
SHAPES = [(49152, 1024), (8192, 4096), (4096, 8192), (2048, 32768), (512, 131072)]
HEADS = (262144, 128)
aten = torch.ops.aten
LABELS = {"layer_norm": "F.layer_norm", "rms_norm": "F.rms_norm", "add_layer_norm": "add, F.layer_norm",
          "add_rms_norm": "add, F.rms_norm", "layer_norm_backward": "aten.native_layer_norm_backward",
          "rms_norm_backward": "aten._fused_rms_norm_backward"}


def case(kernel, type, rows, columns, shift=0, **more):
    arrays = 4 if kernel.startswith("add_") else 3 if kernel.endswith("backward") else 2
    sizes = {"rows": rows, "columns": columns} | ({"shift": shift} if shift else {})
    return Case(kernel, type, sizes, arrays * rows * columns * SIZES[type], label=LABELS[kernel], **more)


def cases():
    for rows, columns in SHAPES:
        for kernel in ("layer_norm", "rms_norm"):
            for type in ("float32", "float16"):
                yield case(kernel, type, rows, columns)
    for rows, columns in ((32768, 1024), (16384, 4096), (16384, 8192), (16384, 32768), (2048, 131072)):
        yield case("rms_norm", "bfloat16", rows, columns)
    for kernel in ("layer_norm", "rms_norm"):
        for type in ("float16", "bfloat16"):
            yield case(kernel, type, *HEADS)
    for rows, columns in SHAPES[:4]:
        for type in ("float32", "float16"):
            yield case("add_rms_norm", type, rows, columns)
    for type in ("float32", "float16"):
        yield case("add_layer_norm", type, 8192, 4096)
    yield case("add_rms_norm", "bfloat16", 16384, 8192)
    for rows, columns in SHAPES[:4]:
        for kernel in ("layer_norm_backward", "rms_norm_backward"):
            for type in ("float32", "float16"):
                yield case(kernel, type, rows, columns)
    yield case("rms_norm_backward", "bfloat16", 8192, 4096)
    yield case("layer_norm_backward", "float32", 8192, 4097)
    yield case("rms_norm_backward", "float16", *HEADS)


def baseline(case):
    rows, columns = case.sizes["rows"], case.sizes["columns"]
    weight, bias = (random_tensor(case, columns) for _ in range(2))

    def layer_norm(x):
        return F.layer_norm(x, (columns,), weight, bias)

    def rms_norm(x):
        return F.rms_norm(x, (columns,), weight, 1e-5)

    def with_sum(norm):  # cgrt's writes the sum, too
        def run(x, residual):
            total = x + residual
            return norm(total), total
        return run

    def make_set():
        dy = random_tensor(case, rows, columns)
        if not case.kernel.endswith("backward"):
            return (dy, random_tensor(case, rows, columns)) if case.kernel.startswith("add_") else (dy,)
        x = random_tensor(case, rows, columns)
        if case.kernel == "layer_norm_backward":
            return dy, x, *aten.native_layer_norm(x, [columns], weight, bias, 1e-5)[1:]
        return dy, x, aten._fused_rms_norm(x, [columns], weight, 1e-5)[1]

    # torch.compile has the two last ones as expressions, which it fuses.
    return make_set, {
        "layer_norm": layer_norm,
        "rms_norm": rms_norm,
        "add_layer_norm": with_sum(layer_norm),
        "add_rms_norm": with_sum(rms_norm),
        "layer_norm_backward": lambda dy, x, mean, rstd: aten.native_layer_norm_backward(
            dy, x, [columns], mean, rstd, weight, bias, [True, True, True]),
        "rms_norm_backward": lambda dy, x, rstd: aten._fused_rms_norm_backward(
            dy, x, [columns], rstd, weight, [True, True]),
    }[case.kernel]
