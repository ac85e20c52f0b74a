"""The kernels that cgrt's began from, with the seeds' shapes, beside what the seeds reached on an A100.

Those figures are public: the tables of github.com/BBuf/how-to-optim-algorithm-in-cuda, A100 PCIe 40 GB. `seed` is
what a table compares: the slower way and the seed's own. See docs/seeds.md.
"""
import dataclasses

from bench import Case
from families import elementwise, index, reduce, rows, upsample

FAMILIES = {"mul": elementwise, "dot": reduce, "softmax": rows, "index_add": index, "upsample_nearest": upsample,
            "upsample_nearest_backward": upsample}
MEASURES = ["kernels/bench/raw_cub.cu", "kernels/bench/reduce_ladder.cu"] + [
    path for family in (elementwise, index, reduce, rows, upsample)
    for path in family.MEASURES + [f"kernels/bench/{family.__name__.replace('.', '/')}.py"]]

COUNT = 1 << 25
# On one address. Threads that contend try single halves again and again: many more would take minutes.
ATOMICS = 1 << 13
SMALL_IMAGES = (16, 32, 80, 80)
LADDER = (990.66, 479.58, 462.02, 244.16, 167.10, 158.78, 105.47, 101.7, 99.71)  # v0 to v8
HALF_ATOMICS, PAIRED_ATOMICS, PADDED_ATOMICS = 422360, 137020, 137010  # of 2^25 products: not our count
SOFTMAX = {16: (26.43, 9.66), 32: (46.40, 18.91), 64: (120.16, 59.65), 128: (430.18, 208.93), 512: (6090, 3100)}
UPSAMPLE = [("upsample_nearest", "float32", (111.42, 61.44), 1.81),
            ("upsample_nearest_backward", "float32", (65.12, 50.56), 1.29),
            ("upsample_nearest", "float16", (100.38, 35.36), 2.84),
            ("upsample_nearest_backward", "float16", (57.38, 40.26), 1.43)]
# Rows, columns, indices, below which they are, and the speedup to reach.
INDEX_ADD = [(1 << 25, 1, 15, 1024, (17.15, 12), 1.0), (32768, 1024, 15, 1024, (27.78, 26.98), 1.0),
             (32, 1 << 20, 15, 32, (186.88, 247.10), 1.3), (1 << 25, 1, 1024, 1024, (7.9, 7.79), 1.0),
             (32768, 1024, 1024, 1024, (27.87, 28.67), 1.0)]


def cases():
    for type, seed, gain in (("float32", (298.46, 284), 0.0), ("float16", (237.28, 140.74), 1.69)):
        yield dataclasses.replace(elementwise.arrays("mul", type, COUNT, gain, peer="mul_naive"), seed=seed)
        yield elementwise.arrays("mul", type, COUNT, 0.99)
    yield elementwise.arrays("mul", "float32", COUNT, peer="raw_cub_mul")

    for step in range(1, 9):
        yield dataclasses.replace(reduce.array(f"reduce_v{step}", "float32", COUNT, peer="reduce_v0"),
                                  seed=(LADDER[0], LADDER[step]))
    yield reduce.array("reduce_all_sum", "float32", COUNT, peer="reduce_v0")
    yield reduce.array("reduce_all_sum", "float32", COUNT, 1.0, peer="cub_reduce_sum")

    for kernel, seed in (("atomic_half2", PAIRED_ATOMICS), ("atomic_half_and_zero", PADDED_ATOMICS)):
        yield dataclasses.replace(reduce.array(kernel, "float16", ATOMICS, 3.0, inputs=2, peer="atomic_half"),
                                  seed=(HALF_ATOMICS, seed))
    yield reduce.array("dot", "float16", COUNT, 1.2, inputs=2, label="dot")

    for kernel, type, seed, gain in UPSAMPLE:
        yield dataclasses.replace(upsample.case(kernel, type, SMALL_IMAGES, 2, gain), seed=seed)

    for matrix, columns, count, below, seed, gain in INDEX_ADD:
        yield dataclasses.replace(index.case("index_add", "float32", matrix, columns, count, gain, index_rows=below),
                                  seed=seed)

    for columns, seed in SOFTMAX.items():
        yield dataclasses.replace(rows.case("softmax", "float32", 32 * 64 * columns, columns),
                                  seed=seed, share=0.92 if columns >= 128 else 0.0)


def peer(case):
    return FAMILIES[case.kernel].peer(case)
