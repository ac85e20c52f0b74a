"""What kernels of a few tokens cost in a graph with programmatic edges, beside a node that does nothing."""
from bench import Case
from families import add_norm, elementwise, rows

FAMILIES = {"rms_norm": rows, "layer_norm": rows, "add_rms_norm": add_norm, "silu_and_mul": elementwise}
MEASURES = [path for family in (rows, add_norm, elementwise)
            for path in family.MEASURES + [f"kernels/bench/{family.__name__.replace('.', '/')}.py"]]


def cases():
    # Beside itself: how well two runs of the same agree.
    yield Case("empty", "float32", {}, 0, chain=True, peer="empty")
    for hidden in (4096, 7168, 8192):
        for tokens in (1, 16, 64, 256):
            for type in ("float16", "bfloat16"):
                yield rows.case("rms_norm", type, tokens, hidden, chain=True)
            yield add_norm.case("add_rms_norm", "float16", tokens, hidden, chain=True)
            yield rows.case("layer_norm", "float16", tokens, hidden, chain=True)
            yield elementwise.matrix("silu_and_mul", "float16", tokens, hidden, chain=True)


def peer(case):
    return FAMILIES[case.kernel].peer(case)
