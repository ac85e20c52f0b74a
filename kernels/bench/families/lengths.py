"""Rows of any length at any alignment, few and many, which nobody tunes for; arrays that begin between packs."""
from case import SIZES, Case
from families import batch_norm, elementwise, norm, reduce, softmax

FAMILIES = {kernel: family for family in (softmax, norm) for kernel in family.LABELS if not kernel.startswith("add_")}
OTHERS = {"mul": elementwise, "reduce_rows_sum": reduce, "batch_norm_train": batch_norm}
MEASURES = [path for family in (softmax, norm, elementwise, reduce, batch_norm)
            for path in family.MEASURES + [f"kernels/bench/{family.__name__.replace('.', '/')}.py"]]

MB = 1 << 20
COLUMNS = {50257: 128 * MB, 151935: 256 * MB, 250002: 256 * MB, 1000003: 1024 * MB, 111: 64 * MB,
           64: 256 * MB}  # and bytes of an array of many rows
SHIFTED = {4096: 256 * MB, 151935: 128 * MB}
TYPES = ("float32", "float16", "bfloat16")
FEW = (3, 17)


def rows_of(size, columns, type):
    return size // (columns * SIZES[type]) | 1


def cases():
    # Not all types with all lengths: each kernel meets each length with two, and each type with four lengths.
    for i, (kernel, family) in enumerate(FAMILIES.items()):
        for j, (columns, size) in enumerate(COLUMNS.items()):
            few, many = TYPES[(i + j) % 3], TYPES[(i + j + 1) % 3]
            yield family.case(kernel, few, FEW[(i + j) % 2], columns, is_limited=True)
            yield family.case(kernel, many, rows_of(size, columns, many), columns, is_limited=True)
        for j, (columns, size) in enumerate(SHIFTED.items()):
            type = TYPES[(i + j) % 3]
            yield family.case(kernel, type, rows_of(size, columns, type), columns, shift=1, is_limited=True)
    for type in ("float16", "bfloat16"):
        yield elementwise.arrays("mul", type, 1 << 27, shift=1, is_limited=True)
    yield elementwise.arrays("mul", "float16", (1 << 27) + 1, is_limited=True)
    for type in ("float32", "float16"):  # which writes a float for each element
        yield Case("reduce_rows_sum", type, {"rows": 1 << 26, "columns": 1}, (SIZES[type] + 4) << 26, label="sum(-1)",
                   is_limited=True)
    for shift in (0, 1):
        yield batch_norm.case("train", "float16", 3, 17, 29 * 29, 0, shift=shift, is_limited=True)


def baseline(case):
    return (FAMILIES | OTHERS)[case.kernel].baseline(case)
