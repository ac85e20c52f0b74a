"""Attention of one query per sequence over a cache of keys and values, dense and paged."""
import torch
import torch.nn.functional as F
from case import SIZES, Case, random_tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

MEASURES = ["kernels/cgrt_kernels/decode_attention", "kernels/bench/decode_attention.cpp"]
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
HEADS = ((32, 32, 128), (32, 8, 128), (64, 8, 128))
MAX_BYTES = 3 << 30
PLANNED = 32768

MB = 1 << 20


def case(kernel, type, sequences, positions, heads, kv_heads, head_size, backend="flash", baseline="", **more):
    sizes = {"sequences": sequences, "positions": positions, "heads": heads, "kv_heads": kv_heads,
             "head_size": head_size, **more}
    count = 2 * sequences * (positions * kv_heads + heads) * head_size
    moved = count * SIZES[type]
    label = "" if baseline else f"scaled_dot_product_attention, {backend}"
    if baseline:
        return Case(kernel, type, sizes, moved, target=0.95, bandwidth="read", baseline=baseline)
    target = 2.0 if moved <= 32 * MB else 1.3 if moved <= 128 * MB else 1.0
    return Case(kernel, type, sizes, moved, target=target, share=0.85 if target == 1.0 else 0.0, bandwidth="read",
                compiles=False, label=label)  # the same kernels


def cases():
    for heads in HEADS:
        for sequences, positions in ((1, 512), (1, 4096), (1, 32768), (4, 2048), (16, 512), (16, 4096), (64, 8192),
                                     (256, 2048)):
            dense = case("decode_attention", "bfloat16", sequences, positions, *heads)
            if dense.bytes <= MAX_BYTES:
                yield dense
    for sequences, positions in ((1, 32768), (16, 4096)):
        yield case("decode_attention", "bfloat16", sequences, positions, 32, 8, 128, backend="cudnn")
        yield case("decode_attention_paged", "bfloat16", sequences, positions, 32, 8, 128)
    for head_size in (64, 256):
        for sequences, positions in ((1, 8192), (16, 4096)):
            yield case("decode_attention", "float16", sequences, positions, 32, 8, head_size)
    for sequences in (1, 16):  # one plan for all lengths, beside one for each
        for positions in (1, 512, 8192):
            yield case("decode_attention_planned", "bfloat16", sequences, positions, 32, 8, 128,
                       baseline="decode_attention", planned=PLANNED)


def baseline(case):
    sequences, positions, heads, kv_heads, size = (
        case.sizes[name] for name in ("sequences", "positions", "heads", "kv_heads", "head_size"))
    backend = BACKENDS[case.label.rpartition(" ")[2]]

    def make_set():
        return (random_tensor(case, sequences, heads, 1, size),
                *(random_tensor(case, sequences, kv_heads, positions, size) for _ in range(2)))

    def run(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=heads != kv_heads)

    return make_set, run
