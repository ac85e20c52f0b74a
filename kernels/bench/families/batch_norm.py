"""Batch normalization: training, inference and backward, NCHW and NHWC, with float32 parameters."""
import math

import torch
import torch.nn.functional as F
from bench import Case

MEASURES = ["kernels/cgrt_kernels/batch_norm", "kernels/bench/batch_norm.cpp"]

SHAPES = [(64, 112), (256, 56), (512, 28), (1024, 14), (2048, 7)]  # channels, height and width; a batch of 256
PASSES = {"train": 3, "infer": 2, "backward": 5}  # times that the elements move when nothing is kept on the chip
OWN, CUDNN = "F.batch_norm without cuDNN", "F.batch_norm"


def case(op, type, batch, channels, plane, nhwc, target, label=CUDNN):
    moved = PASSES[op] * batch * channels * plane * (4 if type == "float32" else 2)
    return Case(f"batch_norm_{op}", type, {"batch": batch, "channels": channels, "plane": plane, "nhwc": nhwc}, moved,
                target, label=label)


def train_target(type, channels, nhwc):
    if type == "float16" and channels == 64 and not nhwc:
        return 4.0
    return 1.0 if type == "float32" and nhwc else 1.2


def cases():
    for channels, side in SHAPES:
        for type in ("float32", "float16"):
            for nhwc in (0, 1):
                yield case("train", type, 256, channels, side * side, nhwc, train_target(type, channels, nhwc))
    for channels, side in (SHAPES[0], SHAPES[2]):
        for nhwc in (0, 1):
            yield case("backward", "float16", 256, channels, side * side, nhwc, 1.2)
    for type in ("float32", "float16"):
        yield case("infer", type, 256, 256, 56 * 56, 0, 1.0)
        yield case("train", type, 65536, 1024, 1, 1, 1.2)
    yield case("train", "float16", 256, 256, 56 * 56, 0, 1.2, OWN)


def peer(case):
    sizes, op = case.sizes, case.kernel.removeprefix("batch_norm_")
    channels, side = sizes["channels"], math.isqrt(sizes["plane"])
    has_planes = sizes["plane"] > 1
    form = torch.channels_last if sizes["nhwc"] and has_planes else torch.contiguous_format
    shape = (sizes["batch"], channels) + ((side, side) if has_planes else ())
    weight, bias, running_mean = (torch.randn(channels, device="cuda") for _ in range(3))
    running_variance = torch.rand(channels, device="cuda") + 0.5
    parameters = (weight, bias, running_mean, running_variance)
    cudnn = case.label == CUDNN

    def tensor():
        return torch.empty(shape, device="cuda", dtype=case.dtype, memory_format=form).normal_()

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

        return make_set, run

    def run(x):
        with torch.backends.cudnn.flags(enabled=cudnn):
            return F.batch_norm(x, running_mean, running_variance, weight, bias, op == "train", 0.1, 1e-5)

    return lambda: (tensor(),), run
