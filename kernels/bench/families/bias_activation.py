"""The bias of a projection with the activation or the gate behind it."""
import torch.nn.functional as F
from case import SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/bias_activation", "kernels/bench/bias_activation.cpp"]
ACTIVATIONS = {"relu": F.relu, "silu": F.silu, "gelu": F.gelu,
               "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


def case(kernel, type, rows, columns, **more):
    arrays = 3 if kernel.endswith("_gate") else 2
    return Case(kernel, type, {"rows": rows, "columns": columns}, arrays * rows * columns * SIZES[type],
                label="add, " + kernel.removeprefix("bias_").replace("_gate", ", multiply"), **more)


def cases():
    for rows, columns in ((128, 3072), (4096, 3072), (32768, 3072), (4096, 4096), (4096, 16384), (1024, 49152)):
        yield case("bias_gelu", "float16", rows, columns)
    for type in ("float32", "bfloat16"):
        for kernel in ("bias_gelu", "bias_gelu_tanh", "bias_silu", "bias_relu"):
            yield case(kernel, type, 4096, 16384)
    for kernel in ("bias_silu_gate", "bias_gelu_gate"):
        for type in ("float16", "bfloat16"):
            yield case(kernel, type, 4096, 11008)
    yield case("bias_gelu", "float16", 4096, 4097)
    for rows in (1, 8, 64, 256):
        yield case("bias_gelu", "float16", rows, 16384, chain=True)


def baseline(case):
    rows, columns = case.sizes["rows"], case.sizes["columns"]
    is_gate = case.kernel.endswith("_gate")
    activation = ACTIVATIONS[case.kernel.removeprefix("bias_").removesuffix("_gate")]
    bias, other = (random_tensor(case, columns) for _ in range(2))

    def run(x):
        if not is_gate:
            return activation(x + bias)
        return activation(x[:, :columns] + bias) * (x[:, columns:] + other)

    return lambda: (random_tensor(case, rows, (1 + is_gate) * columns),), run
