"""A learner's ladder of products (kernels/bench/gemm_ladder), beside cuBLAS through PyTorch. See docs/gemm_ladder.md."""
import torch
from case import SIZES, Case
from families.gemm import numbers

MEASURES = ["kernels/bench/gemm_ladder", "kernels/cgrt_kernels/gemm"]
FLOAT32 = ["naive", "coalesced", "shared_tile", "register_tile", "wide_loads", "swizzled", "double_buffered"]
BFLOAT16 = ["mma", "wgmma", "specialised", "cluster"]
SIZE = 4096
TARGETS = {"double_buffered": 0.9}  # steps of a lesson: the others show a ratio and aim at none


def cases():
    for type, steps in (("float32", FLOAT32), ("bfloat16", BFLOAT16)):
        for step in steps:
            yield Case(f"gemm_{step}", type, {"m": SIZE, "n": SIZE, "k": SIZE}, 3 * SIZE * SIZE * SIZES[type],
                       target=TARGETS.get(step, 0.0), bandwidth="", label="matmul", compiles=False)
    yield Case("gemm", "bfloat16", {"m": SIZE, "n": SIZE, "k": SIZE}, 3 * SIZE * SIZE * 2, target=0.92, bandwidth="",
               label="matmul", compiles=False)


def baseline(case):
    # PyTorch multiplies floats without TF32 unless it is told to.
    transposed = case.type == "bfloat16"
    return lambda: (numbers(case, SIZE, SIZE), numbers(case, SIZE, SIZE)), lambda a, b: torch.matmul(
        a, b.t() if transposed else b)
