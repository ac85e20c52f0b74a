"""Kernels of a public collection, with its shapes, beside what they reached on an A100.

Those figures are public: the tables of github.com/BBuf/how-to-optim-algorithm-in-cuda, A100 PCIe 40 GB. `published` is
what a table compares: the slower way and the better one. See docs/published.md.
"""
from families import elementwise, index, reduce, softmax, upsample

FAMILIES = {"mul": elementwise, "dot": reduce, "softmax": softmax, "index_add": index, "upsample_nearest": upsample,
            "upsample_nearest_backward": upsample}
MEASURES = ["kernels/bench/raw_cub.cu", "kernels/bench/reduce_ladder.cu"] + [
    path for family in (elementwise, index, reduce, softmax, upsample)
    for path in family.MEASURES + [f"kernels/bench/{family.__name__.replace('.', '/')}.py"]]

COUNT = 1 << 25
# On one address. Threads that contend try single halves again and again: many more would take minutes.
ATOMICS = 1 << 13
SMALL_IMAGES = (16, 32, 80, 80)
LADDER = (990.66, 479.58, 462.02, 244.16, 167.10, 158.78, 105.47, 101.7, 99.71)  # v0 to v8
HALF_ATOMICS, PAIRED_ATOMICS, PADDED_ATOMICS = 422360, 137020, 137010  # of 2^25 products: not our count
SOFTMAX = {16: (26.43, 9.66), 32: (46.40, 18.91), 64: (120.16, 59.65), 128: (430.18, 208.93), 512: (6090, 3100)}
UPSAMPLE = [("upsample_nearest", "float32", (111.42, 61.44)), ("upsample_nearest_backward", "float32", (65.12, 50.56)),
            ("upsample_nearest", "float16", (100.38, 35.36)), ("upsample_nearest_backward", "float16", (57.38, 40.26))]
# Rows, columns, indices, and below which they are.
INDEX_ADD = [(1 << 25, 1, 15, 1024, (17.15, 12)), (32768, 1024, 15, 1024, (27.78, 26.98)),
             (32, 1 << 20, 15, 32, (186.88, 247.10)), (1 << 25, 1, 1024, 1024, (7.9, 7.79)),
             (32768, 1024, 1024, 1024, (27.87, 28.67))]


def cases():
    for type, published in (("float32", (298.46, 284)), ("float16", (237.28, 140.74))):
        yield elementwise.arrays("mul", type, COUNT, baseline="mul_naive", published=published)
        yield elementwise.arrays("mul", type, COUNT)
    yield elementwise.arrays("mul", "float32", COUNT, baseline="raw_cub_mul")

    # Steps of a lesson, and what is no sum: these show a ratio and aim at none.
    for step in range(1, 9):
        yield reduce.array(f"reduce_v{step}", "float32", COUNT, baseline="reduce_v0", target=0.0,
                           published=(LADDER[0], LADDER[step]))
    yield reduce.array("reduce_all_sum", "float32", COUNT, baseline="reduce_v0")
    yield reduce.array("reduce_all_sum", "float32", COUNT, baseline="cub_reduce_sum")
    for kernel, published in (("atomic_half2", PAIRED_ATOMICS), ("atomic_half_and_zero", PADDED_ATOMICS)):
        yield reduce.array(kernel, "float16", ATOMICS, inputs=2, baseline="atomic_half", target=0.0,
                           published=(HALF_ATOMICS, published))
    yield reduce.array("dot", "float16", COUNT, inputs=2, label="dot")

    for kernel, type, published in UPSAMPLE:
        yield upsample.case(kernel, type, SMALL_IMAGES, 2, published=published)

    for matrix, columns, count, below, published in INDEX_ADD:
        yield index.case("index_add", "float32", matrix, columns, count, index_rows=below, published=published)

    for columns, published in SOFTMAX.items():
        yield softmax.case("softmax", "float32", 32 * 64 * columns, columns, published=published)


def baseline(case):
    return FAMILIES[case.kernel].baseline(case)
