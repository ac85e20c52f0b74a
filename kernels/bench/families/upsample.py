"""Nearest upsampling of images, and its gradient."""
import torch
import torch.nn.functional as F
from case import DEVICE, SIZES, Case

MEASURES = ["kernels/cgrt_kernels/upsample", "kernels/bench/upsample.cpp"]

FORWARD, BACKWARD = "upsample_nearest", "upsample_nearest_backward"


def case(kernel, type, images, factor, nhwc=0, **more):
    batch, channels, height, width = images
    out_height, out_width = int(height * factor), int(width * factor)
    count = batch * channels * (height * width + out_height * out_width)
    sizes = {"batch": batch, "channels": channels, "height": height, "width": width, "out_height": out_height,
             "out_width": out_width, "nhwc": nhwc}
    # A gradient reads four times what it writes: that is held against reading and writing as one.
    return Case(kernel, type, sizes, count * SIZES[type], bandwidth="write_four" if kernel == FORWARD else "copy",
                label="interpolate", **more)


def cases():
    large = (16, 128, 256, 256)
    yield case(FORWARD, "float32", large, 2)
    yield case(FORWARD, "float16", large, 2)
    yield case(BACKWARD, "float32", large, 2)
    yield case(BACKWARD, "float16", large, 2)
    yield case(FORWARD, "float16", large, 2, nhwc=1)
    yield case(BACKWARD, "float16", large, 2, nhwc=1)
    for images in ((1, 64, 256, 256), (8, 512, 64, 64), (1, 3, 1080, 1920)):
        for factor in (2, 3, 1.5):
            yield case(FORWARD, "float32", images, factor)
            yield case(BACKWARD, "float16", images, factor)


def baseline(case):
    names = ("batch", "channels", "height", "width", "out_height", "out_width")
    batch, channels, height, width, *out = (case.sizes[name] for name in names)
    memory = torch.channels_last if case.sizes["nhwc"] else torch.contiguous_format

    def images(*size):
        return torch.randn(batch, channels, *size, device=DEVICE, dtype=case.dtype).to(memory_format=memory)

    if case.kernel == FORWARD:
        return lambda: (images(height, width),), lambda x: F.interpolate(x, size=tuple(out), mode="nearest")
    backward = torch.ops.aten.upsample_nearest2d_backward
    return lambda: (images(*out),), lambda x: backward(x, out, [batch, channels, height, width])
