#!/usr/bin/env python3
"""Prints decoder_layer_pytorch.inc: a step of the layer of decoder_layer.cpp as PyTorch computes it, on a GPU.

For each type the outputs in float64 of the inputs rounded to the type, and how far those of PyTorch's step in the type
are from them. The inputs are the same numbers here and there.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F

SEQUENCES, HIDDEN, HEADS, KV_HEADS, SIZE, FEATURES, POSITIONS = 5, 256, 4, 2, 64, 512, 100
LENGTHS = (1, 17, 64, 65, 100)  # with the token of this step
EPSILON = 1e-5


def numbers(seed, count, scale, mean=0.0):
    with np.errstate(over="ignore"):
        u = np.arange(count, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed * 40503)
        u ^= u >> np.uint32(16)
        u *= np.uint32(0x85EBCA6B)
        u ^= u >> np.uint32(13)
        u *= np.uint32(0xC2B2AE35)
        u ^= u >> np.uint32(16)
    return (mean + (u.astype(np.float64) / 2**32 * 2 - 1) * scale).astype(np.float32)


def step(dtype, compute):
    """In `compute`, of inputs that are rounded to `dtype`."""
    def tensor(seed, *shape, scale=1.0, mean=0.0):
        values = torch.from_numpy(numbers(seed, math.prod(shape), scale, mean)).to(dtype)
        return values.view(shape).to("cuda", compute)

    def weights(seed, n, k):
        return tensor(seed, n, k, scale=math.sqrt(3 / k))

    x = tensor(1, SEQUENCES, HIDDEN)
    row = (HEADS + 2 * KV_HEADS) * SIZE
    k_cache = tensor(7, SEQUENCES, POSITIONS, KV_HEADS, SIZE)
    v_cache = tensor(8, SEQUENCES, POSITIONS, KV_HEADS, SIZE)

    def norm(x, seed):
        return F.rms_norm(x, (HIDDEN,), tensor(seed, HIDDEN, scale=0.1, mean=1.0), EPSILON)

    qkv = F.linear(norm(x, 2), weights(3, row, HIDDEN)).view(SEQUENCES, -1, SIZE)
    position = torch.tensor(LENGTHS, device="cuda") - 1
    exponents = torch.arange(SIZE // 2, device="cuda", dtype=torch.float64) * 2 / SIZE
    angles = position[:, None].double() * 10000.0**-exponents
    cosine, sine = angles.cos().to(compute)[:, None], angles.sin().to(compute)[:, None]

    def turned(x):
        low, high = x.chunk(2, -1)
        return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1)

    q, k, v = qkv.split((HEADS, KV_HEADS, KV_HEADS), 1)
    sequence = torch.arange(SEQUENCES, device="cuda")
    k_cache[sequence, position] = turned(k)
    v_cache[sequence, position] = v
    mask = torch.arange(POSITIONS, device="cuda")[None, :] < torch.tensor(LENGTHS, device="cuda")[:, None]
    attended = F.scaled_dot_product_attention(turned(q)[:, :, None], k_cache.transpose(1, 2), v_cache.transpose(1, 2),
                                              attn_mask=mask[:, None, None], enable_gqa=True)
    x = x + F.linear(attended.reshape(SEQUENCES, -1), weights(4, HIDDEN, HEADS * SIZE))
    gate, up = F.linear(norm(x, 5), weights(6, 2 * FEATURES, HIDDEN)).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, weights(9, HIDDEN, FEATURES))


print(f"// By decoder_layer.py, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}.")
for name, dtype in (("kFloat16", torch.float16), ("kBFloat16", torch.bfloat16)):
    exact = step(dtype, torch.float64)
    error = (step(dtype, dtype).double() - exact).abs().max().item()
    print(f"{{DType::{name}, {error:.4g}, {{")
    values = [f"{value:.6f}f" for value in exact.flatten().tolist()]
    for i in range(0, len(values), 10):
        print("  " + ", ".join(values[i:i + 10]) + ",")
    print("}},")
