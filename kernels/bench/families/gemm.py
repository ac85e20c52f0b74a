"""Products of sm_90a as cgrt::kernels_gemm has them, beside PyTorch's, which are cuBLAS's."""
import torch
from case import DEVICE, SIZES, Case

MEASURES = ["kernels/cgrt_kernels/gemm", "kernels/bench/gemm.cpp"]
SHAPES = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (256, 28672, 4096),
          (2048, 6144, 4096), (2048, 28672, 4096), (8192, 4096, 14336), (8192, 28672, 8192)]  # m, n, k
TARGET = 0.92


def case(kernel, type, m, n, k, **sizes):
    of_b = (2 if kernel.endswith("gate") else 1) * n * k
    moved = m * n * (2 if kernel.endswith("residual") else 1) + m * k + of_b
    # torch.compile calls the same library, or tries kernels for minutes.
    return Case(kernel, type, {"m": m, "n": n, "k": k} | sizes, moved * SIZES[type], target=TARGET, bandwidth="",
                label=EAGER[kernel][0], compiles=kernel not in ("gemm", "gemm_bias"))


def cases():
    for shape in SHAPES:
        yield case("gemm", "bfloat16", *shape)
    yield case("gemm", "float16", 4096, 4096, 4096)
    yield case("gemm", "bfloat16", 4096, 4096, 4096, plain=1)
    for kernel in list(EAGER)[1:]:
        yield case(kernel, "bfloat16", 4096, 4096, 4096)
        yield case(kernel, "bfloat16", 2048, 14336, 4096)
    yield case("gemm_silu_gate", "bfloat16", 384, 14336, 4096)


def numbers(case, *shape):
    """As kernelbench's, from one to two with either sign: power, and so the speed, depends on them."""
    sign = torch.randint(0, 2, shape, device=DEVICE) * 2 - 1
    return ((torch.rand(shape, device=DEVICE) + 1) * sign).to(case.dtype)


def gate(a, b, bias, residual):
    first, second = torch.nn.functional.linear(a, b).chunk(2, dim=1)
    return torch.nn.functional.silu(first) * second


def gelu(a, b, bias, residual):
    return torch.nn.functional.gelu(torch.nn.functional.linear(a, b, bias), approximate="tanh")


EAGER = {"gemm": ("matmul", lambda a, b, bias, residual: torch.matmul(a, b.t())),
         "gemm_bias": ("F.linear", lambda a, b, bias, residual: torch.nn.functional.linear(a, b, bias)),
         "gemm_gelu_bias": ("F.linear, gelu", gelu),
         "gemm_residual": ("F.linear, add", lambda a, b, bias, residual: torch.nn.functional.linear(a, b) + residual),
         "gemm_silu_gate": ("F.linear, silu, mul", gate)}


def baseline(case):
    m, n, k = (case.sizes[name] for name in ("m", "n", "k"))
    columns = 2 * n if case.kernel == "gemm_silu_gate" else n

    def make_set():
        b = numbers(case, columns, k)
        b = numbers(case, k, columns).t() if case.sizes.get("plain") else b
        return numbers(case, m, k), b, numbers(case, n), numbers(case, m, n)

    return make_set, EAGER[case.kernel][1]
