"""A learner's ladder of products (kernels/bench/gemm_ladder), beside cuBLAS through PyTorch. See docs/gemm_ladder.md."""
import torch
from case import SIZES, Case
from families.gemm import numbers

MEASURES = ["kernels/bench/gemm_ladder", "kernels/cgrt_kernels/gemm"]
FLOAT32 = ["naive", "coalesced", "shared_tile", "register_tile", "wide_loads", "swizzled", "double_buffered"]
BFLOAT16 = ["mma", "wgmma", "specialised", "cluster"]
SIZE = 4096
SIZES_OF = {"naive": 1024, "coalesced": 2048}  # steps of which a launch of 4,096 takes 270 and 40 ms
TARGETS = {"double_buffered": 0.9}  # steps of a lesson: the others show a ratio and aim at none


def cases():
    for type, steps in (("float32", FLOAT32), ("bfloat16", BFLOAT16)):
        for step in steps:
            size = SIZES_OF.get(step, SIZE)
            yield Case(f"gemm_{step}", type, {"m": size, "n": size, "k": size}, 3 * size * size * SIZES[type],
                       target=TARGETS.get(step, 0.0), bandwidth="", label="matmul", compiles=False)
    yield Case("gemm", "bfloat16", {"m": SIZE, "n": SIZE, "k": SIZE}, 3 * SIZE * SIZE * 2, target=0.92, bandwidth="",
               label="matmul", compiles=False)


def baseline(case):
    # PyTorch multiplies floats without TF32 unless it is told to.
    transposed, size = case.type == "bfloat16", case.sizes["m"]
    return lambda: (numbers(case, size, size), numbers(case, size, size)), lambda a, b: torch.matmul(
        a, b.t() if transposed else b)
