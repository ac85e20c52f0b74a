"""What plan_matmul chooses, beside PyTorch's products, which are cuBLAS's, and beside what it does not choose: cuBLASLt
or gemm."""
import dataclasses

from case import SIZES, WRAPPER, Case
from families import gemm

MEASURES = ["kernels/cgrt_kernels/cublaslt", "kernels/cgrt_kernels/gemm", "kernels/bench/gemm.cpp"]
SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 28672, 4096), (16, 28672, 4096), (1, 4096, 14336)]  # m, n, k
LARGE = (8192, 8192, 8192)
# Where it takes gemm, and where it takes cuBLASLt: the row stands beside the other one.
OF_GEMM = {"": [LARGE, (8192, 8192, 28672), (8192, 28672, 8192), (16384, 8192, 8192)], "_bias": [LARGE],
           "_gelu_bias": [LARGE, (8192, 14336, 8192)], "_residual": [LARGE]}
OF_LIBRARY = {"": [(16, 28672, 4096), (1024, 4096, 4096), (4096, 4096, 4096), (2048, 28672, 4096), (8192, 4096, 14336)],
              "_bias": [(1024, 4096, 4096), (4096, 4096, 4096), (8192, 14336, 4096)],
              "_gelu_bias": [(1024, 4096, 4096), (4096, 4096, 4096)],
              "_residual": [(1024, 4096, 4096), (4096, 4096, 4096), (8192, 4096, 14336)]}
CHOICE = 0.98  # of the better one


def case(epilogue, type, shape, baseline="", **sizes):
    m, n, k = shape
    return Case(f"matmul{epilogue}", type, {"m": m, "n": n, "k": k} | sizes, (m * n + m * k + n * k) * SIZES[type],
                target=CHOICE if baseline else WRAPPER, bandwidth="read" if m <= 16 else "",
                baseline=f"{baseline}{epilogue}" if baseline else "", label="matmul", compiles=False)


def cases():
    for type in ("bfloat16", "float16"):
        for shape in SHAPES:
            yield case("", type, shape)
    for baseline, chosen in (("cublaslt", OF_GEMM), ("gemm", OF_LIBRARY)):
        for epilogue, shapes in chosen.items():
            for shape in shapes:
                yield case(epilogue, "bfloat16", shape, baseline)
    yield case("", "bfloat16", LARGE, "cublaslt", plain=1)
    yield case("", "bfloat16", (8192, 8192, 14336), "cublaslt", plain=1)
    yield case("", "bfloat16", (2048, 4096, 4096), "gemm", plain=1)


def baseline(case):
    return gemm.baseline(dataclasses.replace(case, kernel="gemm"))
