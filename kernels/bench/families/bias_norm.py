"""layer_norm and rms_norm of a projection's output with its bias and a residual, whose sum is written, too."""
import torch.nn.functional as F
from case import SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/bias_norm", "kernels/bench/bias_norm.cpp"]


def case(kernel, type, rows, columns, **more):
    return Case(kernel, type, {"rows": rows, "columns": columns}, 4 * rows * columns * SIZES[type],
                label=f"add, add, F.{kernel.removeprefix('bias_add_')}", **more)


def cases():
    for columns in (768, 1024, 4096, 8192, 12288):
        for type in ("float16", "float32"):
            yield case("bias_add_layer_norm", type, 4096, columns)
    for columns in (4096, 8192):
        yield case("bias_add_rms_norm", "bfloat16", 4096, columns)
    yield case("bias_add_rms_norm", "float32", 4096, 12288)
    yield case("bias_add_layer_norm", "float16", 4096, 20480)
    for rows, columns in ((128, 768), (1024, 1024), (32768, 768), (16384, 4096)):
        yield case("bias_add_layer_norm", "float16", rows, columns)
    yield case("bias_add_layer_norm", "float16", 4096, 4097)
    for rows in (1, 8, 64, 256):
        yield case("bias_add_layer_norm", "float16", rows, 4096, chain=True)
        yield case("bias_add_rms_norm", "bfloat16", rows, 8192, chain=True)


def baseline(case):
    rows, columns = case.sizes["rows"], case.sizes["columns"]
    in_bias, weight, bias = (random_tensor(case, columns) for _ in range(3))

    def run(x, residual):
        total = x + in_bias + residual
        if case.kernel == "bias_add_layer_norm":
            return F.layer_norm(total, (columns,), weight, bias), total
        return F.rms_norm(total, (columns,), weight, 1e-5), total

    return lambda: tuple(random_tensor(case, rows, columns) for _ in range(2)), run
