"""PyTorch's encoder layer."""
import torch

import expected
import marks

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda", dtype=torch.float16).eval()
x = torch.randn(4, 128, 512, device="cuda", dtype=torch.float16)
marks.input("x", x)

with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            layer(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(x)
        marks.output("y", y)
marks.dead()

made = expected.Graph("encoder", graph.replay, {"x": x}, {"x": torch.randn_like(x)}, {"y": y},
                      weights=list(layer.parameters()))
expected.write([made], expected.Torch())
