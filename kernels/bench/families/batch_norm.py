"""Batch normalization: training, inference and backward, NCHW and NHWC, with float32 parameters."""
import math

import torch
import torch.nn.functional as F
from case import DEVICE, SIZES, Case

MEASURES = ["kernels/cgrt_kernels/batch_norm", "kernels/bench/batch_norm.cpp"]

SHAPES = [(64, 112), (256, 56), (512, 28), (1024, 14), (2048, 7)]  # channels, height and width; a batch of 256
PASSES = {"train": 3, "infer": 2, "backward": 5}  # times that the elements move when nothing is kept on the chip
OWN, CUDNN = "F.batch_norm without cuDNN", "F.batch_norm"


def case(op, type, batch, channels, plane, nhwc, label=CUDNN, shift=0, **more):
    sizes = {"batch": batch, "channels": channels, "plane": plane, "nhwc": nhwc} | ({"shift": shift} if shift else {})
    moved = PASSES[op] * batch * channels * plane * SIZES[type]
    return Case(f"batch_norm_{op}", type, sizes, moved, label=label, **more)


def cases():
    for channels, side in SHAPES:
        for type in ("float32", "float16"):
            for nhwc in (0, 1):
                yield case("train", type, 256, channels, side * side, nhwc)
    for channels, side in SHAPES:
        for nhwc in (0, 1):
            yield case("backward", "float16", 256, channels, side * side, nhwc)
    for channels, side in (SHAPES[1], SHAPES[2]):
        for nhwc in (0, 1):
            yield case("backward", "float32", 256, channels, side * side, nhwc)
    for channels, side in (SHAPES[1], SHAPES[4]):
        for type in ("float32", "float16"):
            for nhwc in (0, 1):
                yield case("infer", type, 256, channels, side * side, nhwc)
    for type in ("float32", "float16"):
        yield case("train", type, 65536, 1024, 1, 1)
    yield case("train", "float16", 256, 256, 56 * 56, 0, OWN)


def baseline(case):
    sizes, op = case.sizes, case.kernel.removeprefix("batch_norm_")
    channels, side, shift = sizes["channels"], math.isqrt(sizes["plane"]), sizes.get("shift", 0)
    has_planes = sizes["plane"] > 1
    shape = (sizes["batch"], channels) + ((side, side) if has_planes else ())
    weight, bias, running_mean = (torch.randn(channels, device=DEVICE) for _ in range(3))
    running_variance = torch.rand(channels, device=DEVICE) + 0.5
    parameters = (weight, bias, running_mean, running_variance)
    cudnn = case.label == CUDNN

    def tensor():
        x = torch.randn(math.prod(shape) + shift, device=DEVICE, dtype=case.dtype)[shift:]
        if sizes["nhwc"] and has_planes:
            return x.view(shape[0], side, side, channels).permute(0, 3, 1, 2)
        return x.view(shape)

    if op == "backward":  # what autograd calls for F.batch_norm, without its streams
        def make_set():
            x = tensor()
            _, mean, invstd, reserve, backend = torch.ops.aten._batch_norm_impl_index(x, *parameters, True, 0.1, 1e-5,
                                                                                      cudnn)
            return x, tensor(), mean, invstd, reserve, backend

        def run(x, gradient, mean, invstd, reserve, backend):
            return torch.ops.aten._batch_norm_impl_index_backward(
                backend, x, gradient, weight, running_mean, running_variance, mean, invstd, True, 1e-5,
                [True, True, True], reserve)

        def plain(x, gradient, mean, invstd, *_):
            over, each = [0, *range(2, len(shape))], (1, channels) + (1,) * (len(shape) - 2)
            normal = (x.float() - mean.view(each)) * invstd.view(each)
            bias_gradient, weight_gradient = gradient.float().sum(over), (gradient.float() * normal).sum(over)
            means = (bias_gradient.view(each) + normal * weight_gradient.view(each)) / (x.numel() // channels)
            x_gradient = (gradient.float() - means) * (weight * invstd).view(each)
            return x_gradient.to(x.dtype), weight_gradient, bias_gradient

        return make_set, run, plain

    def plain(x):
        return F.batch_norm(x, running_mean, running_variance, weight, bias, op == "train", 0.1, 1e-5)

    def run(x):
        with torch.backends.cudnn.flags(enabled=cudnn):
            return plain(x)

    return lambda: (tensor(),), run, plain
