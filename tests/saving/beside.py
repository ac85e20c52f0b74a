"""Replays two copies of a bundle in a process in which PyTorch has memory and a graph of its own.

    python3 beside.py LIBRARY BUNDLE      LIBRARY: what beside.cpp is built as

Fails when a copy differs from the recording, or PyTorch's own replay from what it gave before.
"""
import ctypes
import sys

import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda", dtype=torch.float16).eval()
x = torch.randn(4, 128, 512, device="cuda", dtype=torch.float16)
with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        layer(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(x)
graph.replay()
before = y.clone()

library = ctypes.CDLL(sys.argv[1])
differences = library.replay_beside(sys.argv[2].encode())

y.zero_()
graph.replay()
is_same = torch.equal(y, before)
print(f"{differences} differences of the copies; PyTorch's replay is {'the same' if is_same else 'ANOTHER'}")
sys.exit(0 if differences == 0 and is_same else 1)
