"""A stack of decoder blocks."""
import torch

import expected
import marks
import model

torch.manual_seed(0)
blocks = model.stack()
x = torch.randn(2, 256, 1024, device="cuda", dtype=torch.bfloat16)
marks.input("x", x)

with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            blocks(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = blocks(x)
        marks.output("y", y)
marks.dead()

made = expected.Graph("decoder", graph.replay, {"x": x}, {"x": torch.randn_like(x)}, {"y": y},
                      weights=list(blocks.parameters()))
expected.write([made], expected.Torch())
