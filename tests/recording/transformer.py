"""A PyTorch transformer layer under torch.cuda.graph, with NVTX ranges."""
import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True, device="cuda", dtype=torch.float16)
x = torch.randn(8, 128, 512, device="cuda", dtype=torch.float16)


def step():
    with torch.cuda.nvtx.range("layer0"):
        h = layer.norm1(x + layer._sa_block(x, None, None))
        with torch.cuda.nvtx.range("feed_forward"):
            return layer.norm2(h + layer._ff_block(h))


side = torch.cuda.Stream()
with torch.no_grad(), torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    out = step()
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
print("transformer:", tuple(out.shape), bool(torch.isfinite(out).all()))
