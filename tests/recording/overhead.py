"""What recording costs: prints one line of JSON. Run it alone and under `graphdump run`.

    python3 overhead.py
"""
import json
import statistics
import time

import torch

torch.manual_seed(0)


def chain():
    x = torch.zeros(1024, device="cuda")

    def step():
        for _ in range(1000):
            x.add_(1)

    return step


def decoder():
    """One token of a decoder of 24 layers: cuBLAS and elementwise kernels."""
    width, heads, past = 1024, 16, 256
    layers = [
        {name: torch.randn(*shape, device="cuda", dtype=torch.float16) * 0.02 for name, shape in
         {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}.items()}
        for _ in range(24)
    ]
    keys = torch.randn(heads, past, width // heads, device="cuda", dtype=torch.float16)
    values = torch.randn_like(keys)
    x = torch.randn(1, width, device="cuda", dtype=torch.float16)

    def step():
        h = x
        for layer in layers:
            q, _, _ = (h @ layer["qkv"]).view(3, heads, 1, width // heads)
            scores = torch.softmax(q @ keys.transpose(1, 2) * 0.125, dim=-1)
            h = h + (scores @ values).view(1, width) @ layer["out"]
            h = h + torch.nn.functional.gelu(h @ layer["up"]) @ layer["down"]
        return h

    return step


def measure(step):
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            step()
        stream.synchronize()
        captures, graphs = [], []
        for _ in range(8):
            graph = torch.cuda.CUDAGraph()
            begin = time.perf_counter()
            graph.capture_begin()
            step()
            graph.capture_end()
            captures.append(time.perf_counter() - begin)
            graphs.append(graph)
        graph = graphs[-1]
        for _ in range(20):
            graph.replay()
        stream.synchronize()
        gpu = []
        for _ in range(31):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            gpu.append(start.elapsed_time(end))
        host = []
        for _ in range(31):
            begin = time.perf_counter()
            for _ in range(10):
                graph.replay()
            host.append((time.perf_counter() - begin) / 10)
            stream.synchronize()
    # The least of a few is the code's own cost: hosts of shared machines run at changing speeds.
    return {"capture_ms": round(1e3 * min(captures[2:]), 3), "replay_gpu_ms": round(statistics.median(gpu), 4),
            "replay_host_us": round(1e6 * min(host), 3)}


print(json.dumps({"chain": measure(chain()), "decoder": measure(decoder())}))
