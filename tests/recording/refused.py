"""A capture that PyTorch's .item() ends: `graphdump explain -- python3 refused.py` tells it."""
import torch

x = torch.ones(1024, device="cuda")
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x.sum().item()
except Exception as error:
    print("refused:", type(error).__name__)
