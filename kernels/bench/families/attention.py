"""Attention of as many queries as keys, with and without the causal mask: bound by products, not by memory."""
import torch.nn.functional as F
from case import SIZES, Case, random_tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

MEASURES = ["kernels/cgrt_kernels/attention", "kernels/bench/attention.cpp"]
BACKENDS = {"cudnn": (SDPBackend.CUDNN_ATTENTION, 0.85), "flash": (SDPBackend.FLASH_ATTENTION, 1.0)}  # and targets
SHAPES = (("bfloat16", 4, 512, 32, 32, 128), ("bfloat16", 4, 2048, 32, 32, 128), ("bfloat16", 4, 8192, 32, 32, 128),
          ("bfloat16", 1, 16384, 32, 32, 128), ("bfloat16", 4, 2048, 32, 8, 128), ("float16", 16, 64, 12, 12, 64),
          ("float16", 4, 2048, 32, 32, 64), ("bfloat16", 4, 2048, 8, 8, 256), ("bfloat16", 1, 1280, 28, 4, 128),
          ("bfloat16", 1, 4352, 8, 2, 128))


def cases():
    for type, batch, tokens, heads, kv_heads, head_size in SHAPES:
        sizes = {"batch": batch, "tokens": tokens, "heads": heads, "kv_heads": kv_heads, "head_size": head_size}
        moved = 2 * batch * tokens * (heads + kv_heads) * head_size * SIZES[type]
        for kernel in ("attention", "attention_causal"):
            for backend, (_, target) in BACKENDS.items():
                if backend == "cudnn" and head_size == 256:
                    continue  # cuDNN's has at most 128 here
                yield Case(kernel, type, sizes, moved, target=target, bandwidth="", compiles=False,
                           label=f"scaled_dot_product_attention, {backend}")


def baseline(case):
    batch, tokens, heads, kv_heads, size = (
        case.sizes[name] for name in ("batch", "tokens", "heads", "kv_heads", "head_size"))
    backend, _ = BACKENDS[case.label.rpartition(" ")[2]]

    def make_set():  # as kernelbench has them: [batch, tokens, heads, head_size]
        return tuple(random_tensor(case, batch, tokens, count, size).transpose(1, 2)
                     for count in (heads, kv_heads, kv_heads))

    def run(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=case.kernel == "attention_causal",
                                                  enable_gqa=heads != kv_heads)

    return make_set, run
