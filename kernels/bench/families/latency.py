"""What kernels of a few tokens cost in a graph with programmatic edges, beside a node that does nothing."""
from case import Case
from families import elementwise, norm

MEASURES = [path for family in (norm, elementwise)
            for path in family.MEASURES + [f"kernels/bench/{family.__name__.replace('.', '/')}.py"]]


def cases():
    # Beside itself: how well two runs of the same agree.
    yield Case("empty", "float32", {}, 0, target=0.0, chain=True, baseline="empty")
    for hidden in (4096, 7168, 8192):
        for tokens in (1, 16, 64, 256):
            for type in ("float16", "bfloat16"):
                yield norm.case("rms_norm", type, tokens, hidden, chain=True)
            yield norm.case("add_rms_norm", "float16", tokens, hidden, chain=True)
            yield norm.case("layer_norm", "float16", tokens, hidden, chain=True)
            yield elementwise.matrix("silu_and_mul", "float16", tokens, hidden, chain=True)


def baseline(case):
    return (elementwise if case.kernel == "silu_and_mul" else norm).baseline(case)
