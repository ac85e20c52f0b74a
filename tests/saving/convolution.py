"""A convolution network."""
import torch

import expected
import marks


def convolution(channels, out, stride=1):
    return torch.nn.Sequential(torch.nn.Conv2d(channels, out, 3, stride, 1, bias=False), torch.nn.BatchNorm2d(out),
                               torch.nn.ReLU())


torch.manual_seed(0)
network = torch.nn.Sequential(
    convolution(3, 64, 2), convolution(64, 64), convolution(64, 128, 2), convolution(128, 128),
    convolution(128, 256, 2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
    torch.nn.Linear(256, 1000)).to("cuda", torch.float16).eval()
x = torch.randn(8, 3, 224, 224, device="cuda", dtype=torch.float16)
marks.input("x", x)

with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            network(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = network(x)
        marks.output("y", y)
marks.dead()

made = expected.Graph("convolution", graph.replay, {"x": x}, {"x": torch.randn_like(x)}, {"y": y})
expected.write([made], expected.Torch())
