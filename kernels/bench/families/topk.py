"""The largest of each row with their softmax, as a mixture of experts routes its tokens."""
import torch
from case import SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/topk", "kernels/bench/topk.cpp"]


def case(type, tokens, experts, k):
    sizes = {"tokens": tokens, "experts": experts, "k": k}
    return Case("topk_softmax", type, sizes, tokens * (experts * SIZES[type] + 8 * k), label="softmax, topk")


def cases():
    for experts, k in ((8, 2), (128, 8), (256, 8)):
        for tokens in (1, 8, 64, 256, 4096, 16384):
            for type in ("float32", "bfloat16"):
                yield case(type, tokens, experts, k)
    yield case("float32", 131072, 16, 2)


def baseline(case):
    tokens, experts, k = (case.sizes[name] for name in ("tokens", "experts", "k"))

    def run(logits):
        weights, chosen = torch.topk(torch.softmax(logits, -1, dtype=torch.float32), k)
        return weights / weights.sum(-1, keepdim=True), chosen.to(torch.int32)

    return lambda: (random_tensor(case, tokens, experts),), run
