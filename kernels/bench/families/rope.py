"""Rotary position embedding with the projection's bias, to arrays and to a paged cache."""
import torch
from case import DEVICE, SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/rope", "kernels/bench/rope.cpp"]
POSITIONS = 8192  # as in rope.cpp


def case(kernel, type, tokens, heads, kv_heads, head_size, **more):
    sizes = {"tokens": tokens, "heads": heads, "kv_heads": kv_heads, "head_size": head_size}
    count = 2 * tokens * (heads + 2 * kv_heads) * head_size
    return Case(kernel, type, sizes, count * SIZES[type], label="add, rotate, split", **more)


def cases():
    for kernel in ("rope", "rope_paged"):
        for tokens in (1, 8, 64, 256, 4096, 8192):
            yield case(kernel, "bfloat16", tokens, 32, 8, 128)
        yield case(kernel, "bfloat16", 8192, 64, 8, 128)
        yield case(kernel, "float16", 8192, 32, 32, 128)
        yield case(kernel, "float32", 4096, 32, 8, 128)


def baseline(case):
    tokens, heads, kv_heads, size = (case.sizes[name] for name in ("tokens", "heads", "kv_heads", "head_size"))
    row = heads + 2 * kv_heads
    bias = random_tensor(case, row * size)
    places = torch.arange(tokens, device=DEVICE) % POSITIONS
    slots = (POSITIONS // 16 - 1 - places // 16) * 16 + places % 16
    frequencies = 10000.0 ** (-torch.arange(0, size, 2, device=DEVICE) / size)
    angles = torch.outer(torch.arange(POSITIONS, device=DEVICE), frequencies)
    cosine, sine = (torch.cat((table, table), 1).to(case.dtype) for table in (angles.cos(), angles.sin()))

    def turned(x):
        low, high = x.chunk(2, -1)
        return x * cosine[places][:, None] + torch.cat((-high, low), -1) * sine[places][:, None]

    def to_arrays(qkv, *_):
        q, k, v = (qkv + bias).view(tokens, row, size).split((heads, kv_heads, kv_heads), 1)
        return turned(q), turned(k), v.contiguous()

    def to_cache(qkv, k_cache, v_cache):
        q, k, v = to_arrays(qkv)
        k_cache[slots] = k
        v_cache[slots] = v
        return q

    def make_set():
        qkv = random_tensor(case, tokens, row * size)
        if case.kernel == "rope":
            return (qkv,)
        return qkv, *(random_tensor(case, POSITIONS, kv_heads, size) for _ in range(2))

    return make_set, to_arrays if case.kernel == "rope" else to_cache
