"""One token of each row of logits: the largest, or drawn at random, with and without top-k and top-p.

PyTorch draws by an exponential race, too, which is faster than multinomial(). It filters the k largest where k is
given, and sorts the row where it is not.
"""
import torch
from case import DEVICE, SIZES, Case

MEASURES = ["kernels/cgrt_kernels/sampling", "kernels/bench/sampling.cpp"]
LABELS = {"sample_greedy": "argmax", "sample_random": "softmax, race", "sample_filtered": "topk or sort, softmax, race"}


def case(kernel, type, rows, vocabulary, **more):
    moved = rows * vocabulary * SIZES[type]
    return Case(kernel, type, {"rows": rows, "vocabulary": vocabulary} | more, moved, bandwidth="read",
                label=LABELS[kernel])


def cases():
    for type in ("float32", "bfloat16"):
        for rows in (1, 8, 64, 256, 1024):
            yield case("sample_greedy", type, rows, 128256)
            yield case("sample_random", type, rows, 128256)
            yield case("sample_filtered", type, rows, 128256, top_k=50, top_p=95)
    for rows in (1, 64):
        yield case("sample_filtered", "float32", rows, 128256, top_k=0, top_p=95)
        yield case("sample_filtered", "float32", rows, 128256, top_k=2000, top_p=100)
        yield case("sample_filtered", "float16", rows, 50257, top_k=50, top_p=95)
        yield case("sample_random", "float16", rows, 50257)


def race(probabilities):
    return (probabilities / torch.empty_like(probabilities).exponential_()).argmax(-1, keepdim=True)


def baseline(case):
    rows, vocabulary = case.sizes["rows"], case.sizes["vocabulary"]
    top_k, top_p = case.sizes.get("top_k", 0), case.sizes.get("top_p", 100) / 100

    def greedy(logits):
        return logits.argmax(-1).to(torch.int32)

    def random(logits):
        return race(torch.softmax(logits, -1, dtype=torch.float32)).to(torch.int32)

    def filtered(logits):
        if top_k > 0:
            values, order = torch.topk(logits, top_k)
        else:
            values, order = torch.sort(logits, descending=True)
        probabilities = torch.softmax(values, -1, dtype=torch.float32)
        if top_p < 1:
            before = probabilities.cumsum(-1) - probabilities
            probabilities = probabilities.masked_fill(before >= top_p, 0)
        return order.gather(-1, race(probabilities)).to(torch.int32)

    def make_set():
        return ((torch.randn(rows, vocabulary, device=DEVICE) * 3).to(case.dtype),)

    return make_set, {"sample_greedy": greedy, "sample_random": random, "sample_filtered": filtered}[case.kernel]
