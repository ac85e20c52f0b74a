"""Products of few rows with the weights of a linear layer, beside PyTorch's, which are cuBLAS's.

Integer weights (`bits`) stand beside the products of PyTorch's that there are: with the same numbers in bfloat16, and
with its own int4. Launches with `max_rows` read `rows` on the device.
"""
import torch
from case import DEVICE, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/skinny_gemm", "kernels/bench/skinny_gemm.cpp"]
SHAPES = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (8192, 28672), (128256, 4096)]  # n, k
GROUP = 128  # as in skinny_gemm.cpp
TARGET = 1.15
INT4 = "_weight_int4pack_mm"


def case(rows, n, k, bits=16, target=TARGET, **more):
    sizes = {"rows": rows, "n": n, "k": k} | ({"bits": bits} if bits < 16 else {})
    scales = n * k // GROUP if bits < 16 else 0
    # torch.compile would call the same library, or try kernels for minutes.
    more = {"label": "F.linear" if bits == 16 else "bfloat16 F.linear", "compiles": False} | more
    return Case("skinny_gemm", "bfloat16", sizes, n * k * bits // 8 + 2 * (scales + rows * (n + k)), target=target,
                bandwidth="read", is_limited=rows <= 16, **more)


def cases():
    for n, k in SHAPES:
        for rows in (1, 4, 16):
            yield case(rows, n, k)
        yield case(64, n, k, target=1.0)
        for bits in (4, 8):
            for rows in (1, 4, 8, 16):
                yield case(rows, n, k, bits)
    for n, k in SHAPES[:3]:
        if hasattr(torch, INT4):
            yield case(1, n, k, 4, label=INT4)
        for bits in (16, 8, 4):
            for rows in (1, 4, 16):
                counted = case(rows, n, k, bits)
                counted.sizes["max_rows"] = 64
                yield counted


def baseline(case):
    rows, n, k = (case.sizes[name] for name in ("rows", "n", "k"))
    if case.label != INT4:
        return lambda: (random_tensor(case, rows, k), random_tensor(case, n, k)), torch.nn.functional.linear

    def make_set():
        halves = torch.randint(0, 256, (n, k // 2), device=DEVICE, dtype=torch.uint8)
        return (random_tensor(case, rows, k), torch._convert_weight_to_int4pack(halves, 8),
                random_tensor(case, k // GROUP, n, 2))

    return make_set, lambda x, weights, scales: torch._weight_int4pack_mm(x, weights, GROUP, scales)
