"""Dropout: PyTorch moves the offset of its random numbers between replays, outside the graph."""
import torch

import expected
import marks

torch.manual_seed(0)
x = torch.randn(64, 1024, device="cuda")
marks.input("x", x)


def step():
    return torch.nn.functional.dropout(torch.nn.functional.dropout(x, 0.5) + 1, 0.25)


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = step()
    marks.output("y", y)
marks.dead()

made = expected.Graph("dropout", graph.replay, {"x": x}, {}, {"y": y}, replays=1)
expected.write([made], expected.Torch())
