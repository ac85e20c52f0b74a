"""torch.compile: decoder blocks, and two functions whose Triton kernels have one name."""
import torch

import expected
import marks
import model

torch.manual_seed(0)
blocks = torch.compile(model.stack(layers=4))
first = torch.compile(lambda x: x * 2 + 1)
second = torch.compile(lambda x: x * 0.25 + 3)
x = torch.randn(2, 256, 1024, device="cuda", dtype=torch.bfloat16)
marks.input("x", x)

with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            second(first(blocks(x)))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = second(first(blocks(x)))
        marks.output("y", y)
marks.dead()

made = expected.Graph("compiled", graph.replay, {"x": x}, {"x": torch.randn_like(x)}, {"y": y})
expected.write([made], expected.Torch())
