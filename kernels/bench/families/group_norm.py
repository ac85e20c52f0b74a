"""Group normalization of images whose channels are last, with and without SiLU, in shapes of diffusion models."""
import math

import torch
import torch.nn.functional as F
from case import DEVICE, SIZES, Case

MEASURES = ["kernels/cgrt_kernels/group_norm", "kernels/bench/group_norm.cpp"]
# batch, side of a plane, channels
SHAPES = [(2, 64, 320), (2, 32, 640), (2, 16, 1280), (2, 8, 2560), (16, 64, 320), (1, 512, 128)]


def case(type, batch, side, channels, silu):
    sizes = {"batch": batch, "plane": side * side, "channels": channels, "groups": 32, "silu": silu}
    count = batch * side * side * channels
    return Case("group_norm", type, sizes, 2 * count * SIZES[type],
                label="F.group_norm, F.silu" if silu else "F.group_norm")


def cases():
    for batch, side, channels in SHAPES:
        for type in ("float32", "bfloat16"):
            yield case(type, batch, side, channels, 1)
    yield case("float16", 16, 64, 320, 0)


def baseline(case):
    batch, channels, groups, silu = (case.sizes[name] for name in ("batch", "channels", "groups", "silu"))
    side = math.isqrt(case.sizes["plane"])
    weight, bias = (torch.randn(channels, device=DEVICE, dtype=case.dtype) for _ in range(2))

    def run(x):
        y = F.group_norm(x, groups, weight, bias)
        return F.silu(y) if silu else y

    def make_set():
        x = torch.randn(batch, side, side, channels, device=DEVICE, dtype=case.dtype)
        return (x.permute(0, 3, 1, 2),)

    return make_set, run
