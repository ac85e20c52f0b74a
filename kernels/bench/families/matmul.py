"""cuBLASLt's products as cgrt::cublaslt has them, beside PyTorch's, which are cuBLAS's."""
import torch
from case import DEVICE, SIZES, WRAPPER, Case

MEASURES = ["kernels/cgrt_kernels/cublaslt", "kernels/bench/matmul.cpp"]
SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 28672, 4096), (16, 28672, 4096), (1, 4096, 14336)]  # m, n, k


def cases():
    for type in ("bfloat16", "float16"):
        for m, n, k in SHAPES:
            yield Case("matmul", type, {"m": m, "n": n, "k": k}, (m * n + m * k + n * k) * SIZES[type], target=WRAPPER,
                       bandwidth="read" if m <= 16 else "", label="matmul", compiles=False)


def baseline(case):
    m, n, k = (case.sizes[name] for name in ("m", "n", "k"))

    def numbers(*shape):  # as kernelbench's, from one to two with either sign: power, and so the speed, depends on them
        return ((torch.rand(shape, device=DEVICE) + 1) * (torch.randint(0, 2, shape, device=DEVICE) * 2 - 1)).to(
            case.dtype)

    return lambda: (numbers(m, k), numbers(n, k)), lambda a, b: torch.matmul(a, b.t())
