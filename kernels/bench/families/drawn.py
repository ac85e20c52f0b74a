"""Cases drawn at random from what the other families run: shapes that nobody has tuned for.

CGRT_SEED, a number, draws others; CGRT_CASES says how many (120). The same seed draws the same cases.
"""
import os
import random

from case import SIZES, Case
from families import (attention, batch_norm, bias_activation, bias_norm, decode_attention, dropout, elementwise,
                      group_norm, index, norm, reduce, rope, sampling, scan, skinny_gemm, softmax, topk,
                      transpose_heads, upsample)

MEASURES = ["kernels/cgrt_kernels"]
SEED, COUNT = int(os.environ.get("CGRT_SEED", "1")), int(os.environ.get("CGRT_CASES", "120"))
MAX_ELEMENTS, MAX_TOKENS, MAX_PAIRS = 1 << 26, 1 << 14, 1 << 27
FLOATS, HALVES = ("float32", "float16", "bfloat16"), ("float16", "bfloat16")


class Draw(random.Random):
    def of(self, *values):
        return self.choice(values)

    def size(self, low, high):
        """All magnitudes alike."""
        return round(low * (high / low) ** self.random())

    def width(self, max_width):
        """Some widths of models, and any other."""
        usual = [columns for columns in (64, 128, 256, 768, 1024, 1536, 2048, 4096, 8192) if columns <= max_width]
        return self.choice(usual) if self.random() < 0.4 else self.size(1, max_width)

    def matrix(self, max_width=1 << 18, arrays=1):
        columns = self.width(max_width)
        return self.size(1, max(MAX_ELEMENTS // arrays // columns, 1)), columns


def of_rows(family, kernels, max_width=1 << 18):
    return lambda draw: family.case(draw.choice(kernels), draw.of(*FLOATS), *draw.matrix(max_width, arrays=3))


def draw_reduce(draw):
    kernel, label = draw.of(("reduce_rows_sum", "sum(-1)"), ("reduce_rows_max", "amax(-1)"),
                            ("reduce_rows_argmax", "argmax(-1)"), ("reduce_columns_sum", "sum(0)"))
    return reduce.matrix(kernel, draw.of("float32", "float16"), *draw.matrix(), label=label)


def draw_scan(draw):
    rows, columns = draw.matrix()
    return scan.scan("scan_rows", draw.of(*FLOATS), {"rows": rows, "columns": columns})


def draw_elementwise(draw):
    kernel, type = draw.of("add", "mul", "silu", "gelu"), draw.of(*FLOATS)
    return elementwise.arrays(kernel, type, draw.size(1, MAX_ELEMENTS), shift=draw.of(0, 0, 1))


def draw_index(draw):
    rows, columns = draw.matrix(1 << 12)
    count = draw.size(1, min(MAX_ELEMENTS // columns, 4 * rows + 1000))
    return index.case(draw.of("index_add", "index_select"), draw.of(*FLOATS), rows, columns, count,
                      skew=draw.of(0, 1, 2))


def draw_batch_norm(draw):
    batch, channels, side = draw.size(1, 256), draw.size(1, 1024), draw.size(2, 128)
    batch = min(batch, max(MAX_ELEMENTS // (channels * side * side), 1))
    return batch_norm.case(draw.of("train", "infer", "backward"), draw.of("float32", "float16"), batch, channels,
                           side * side, draw.of(0, 1))


def draw_group_norm(draw):
    channels, side = 32 * draw.size(1, 64), draw.size(4, 128)
    batch = min(draw.size(1, 16), max(MAX_ELEMENTS // (channels * side * side), 1))
    return group_norm.case(draw.of(*FLOATS), batch, side, channels, draw.of(0, 1))


def draw_upsample(draw):
    factor, channels, height, width = draw.of(2, 2, 3, 4, 1.3), draw.size(1, 512), draw.size(7, 300), draw.size(7, 300)
    batch = min(draw.size(1, 16), max(MAX_ELEMENTS // (channels * height * width * 16), 1))
    return upsample.case(draw.of(upsample.FORWARD, upsample.BACKWARD), draw.of(*FLOATS),
                         (batch, channels, height, width), factor, draw.of(0, 1))


def draw_transpose_heads(draw):
    heads, size = draw.of(3, 8, 12, 32), draw.of(32, 40, 64, 80, 128)
    tokens = draw.size(1, MAX_ELEMENTS // (heads * size))
    sequences = draw.size(1, min(tokens, 256))
    return transpose_heads.case(draw.of("merge_heads", "split_heads"), draw.of(*FLOATS), sequences,
                                tokens // sequences, heads, size)


def draw_rope(draw):
    kv_heads, size = draw.of(1, 2, 4, 8), draw.of(64, 128)
    return rope.case(draw.of("rope", "rope_paged"), draw.of(*FLOATS), draw.size(1, rope.POSITIONS),
                     kv_heads * draw.of(1, 2, 4, 8), kv_heads, size)


def draw_topk(draw):
    experts, tokens, type = draw.size(4, 512), draw.size(1, MAX_TOKENS), draw.of(*FLOATS)
    k = min(draw.of(1, 2, 4, 6, 8), experts)
    return Case("topk_softmax", type, {"tokens": tokens, "experts": experts, "k": k},
                tokens * (experts * SIZES[type] + 8 * k), label="softmax, topk")


def draw_sampling(draw):
    kernel, vocabulary = draw.of(*sampling.LABELS), draw.size(1000, 256000)
    more = {"top_k": draw.of(1, 20, 50, 200), "top_p": draw.of(80, 95, 100)} if kernel == "sample_filtered" else {}
    return sampling.case(kernel, draw.of(*FLOATS), draw.size(1, 256), vocabulary, **more)


def draw_skinny_gemm(draw):
    return skinny_gemm.case(draw.size(1, 64), 256 * draw.size(1, 64), 256 * draw.size(1, 64), target=1.0)


def draw_attention(draw):
    batch, kv_heads, group, size = draw.size(1, 32), draw.of(1, 2, 4, 8), draw.of(1, 1, 4), draw.of(64, 128)
    tokens = min(draw.size(16, MAX_TOKENS), int((MAX_PAIRS * 16 / (batch * kv_heads * group)) ** 0.5))
    sizes = {"batch": batch, "tokens": tokens, "heads": kv_heads * group, "kv_heads": kv_heads, "head_size": size}
    moved = 4 * batch * tokens * kv_heads * (group + 1) * size
    return Case(draw.of("attention", "attention_causal"), draw.of(*HALVES), sizes, moved, bandwidth="", compiles=False,
                label=f"scaled_dot_product_attention, {draw.of('cudnn', 'flash')}")


def draw_decode_attention(draw):
    sequences, kv_heads, group = draw.size(1, 64), draw.of(1, 2, 4, 8), draw.of(1, 3, 4, 8)
    positions = draw.size(16, MAX_ELEMENTS // (sequences * kv_heads * 128))
    return decode_attention.case("decode_attention", draw.of(*HALVES), sequences, positions, kv_heads * group, kv_heads,
                                 draw.of(64, 128))


def draw_dropout(draw):
    return dropout.case(draw.of(dropout.FORWARD, dropout.BACKWARD), draw.of(*FLOATS), draw.size(1, MAX_ELEMENTS),
                        shift=draw.of(0, 0, 1))


FAMILIES = {
    softmax: of_rows(softmax, list(softmax.LABELS)),
    norm: of_rows(norm, list(norm.LABELS)),
    bias_norm: of_rows(bias_norm, ["bias_add_layer_norm", "bias_add_rms_norm"], 1 << 15),
    bias_activation: of_rows(bias_activation, ["bias_gelu", "bias_silu", "bias_relu", "bias_silu_gate"], 1 << 16),
    reduce: draw_reduce, scan: draw_scan, elementwise: draw_elementwise, index: draw_index,
    batch_norm: draw_batch_norm, group_norm: draw_group_norm, upsample: draw_upsample,
    transpose_heads: draw_transpose_heads, rope: draw_rope, topk: draw_topk, sampling: draw_sampling,
    skinny_gemm: draw_skinny_gemm, attention: draw_attention, decode_attention: draw_decode_attention,
    dropout: draw_dropout}


def cases():
    draw, draws, drawn = Draw(SEED), list(FAMILIES.values()), {}
    for i in range(COUNT):
        case = draws[i % len(draws)](draw)
        drawn[str(case)] = case
    yield from drawn.values()


def baseline(case):
    family = next(family for family in FAMILIES if any(case.kernel == other.kernel for other in family.cases()))
    return family.baseline(case)
