"""torch.compile(mode="reduce-overhead"), which makes its graphs itself."""
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024), torch.nn.LayerNorm(1024))
model = model.to("cuda", torch.bfloat16).eval()
compiled = torch.compile(model, mode="reduce-overhead")
x = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    for _ in range(10):
        out = compiled(x)
torch.cuda.synchronize()
print("compiled:", tuple(out.shape), bool(torch.isfinite(out).all()))
