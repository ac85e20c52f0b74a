"""Prefix sums of arrays and of rows, histograms; CUB's operations as cgrt::cub has them, beside CUB itself."""
import torch
from case import SIZES, WRAPPER, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/scan", "kernels/cgrt_kernels/cub", "kernels/cgrt_kernels/histogram",
            "kernels/bench/scan.cpp", "kernels/bench/cub.cpp", "kernels/bench/raw_cub.cu"]


def scan(kernel, type, sizes, **more):
    count = sizes.get("rows", 1) * sizes["columns"]
    return Case(kernel, type, sizes, 2 * count * SIZES[type], label="cumsum", **more)


def sort(type, sizes, **more):
    moved = 2 * sizes["count"] * (SIZES[type] + 4 * sizes.get("values", 0))
    return Case("radix_sort", type, sizes, moved, bandwidth="", **more)


def cases():
    for power in (16, 20, 24, 26, 28):
        array = {"columns": 1 << power}
        yield scan("cub_scan", "float32", array, target=WRAPPER, baseline="raw_cub_scan")
        yield scan("scan", "float32", array)
        yield scan("scan", "float16", array)
    for power in (20, 24, 28):
        yield scan("scan", "float32", {"columns": 1 << power}, baseline="raw_cub_scan")
    yield scan("scan", "bfloat16", {"columns": 1 << 26})
    yield scan("scan", "int32", {"columns": 1 << 26}, baseline="cub_scan")
    yield scan("scan", "int64", {"columns": 1 << 26}, baseline="cub_scan")
    for rows, columns in ((8192, 4096), (256, 128256)):
        for type in ("float32", "float16", "bfloat16"):
            yield scan("scan_rows", type, {"rows": rows, "columns": columns})
    for rows, columns in ((65536, 128), (4096, 16384), (8192, 4097)):
        yield scan("scan_rows", "float32", {"rows": rows, "columns": columns})
    for power in (16, 20, 24, 28):
        yield sort("int32", {"count": 1 << power}, target=WRAPPER, baseline="raw_cub_sort")
    yield sort("int32", {"count": 65536, "bits": 8}, target=WRAPPER, baseline="raw_cub_sort")
    for power in (20, 24, 28):
        yield sort("int32", {"count": 1 << power, "values": 1}, target=WRAPPER, baseline="raw_cub_sort")
    yield sort("float32", {"count": 1 << 24, "values": 1}, label="sort, with indices", compiles=False)
    for power in (20, 24, 28):  # half of the elements are selected
        yield Case("select", "float32", {"count": 1 << power}, 7 << power, target=WRAPPER, baseline="raw_cub_select")
    for power in (20, 24, 28):
        for bins in (256, 65536):
            yield Case("histogram", "float32", {"count": 1 << power, "bins": bins}, 4 << power, bandwidth="read",
                       baseline="raw_cub_histogram")


def baseline(case):
    if case.kernel == "radix_sort":
        return lambda: (random_tensor(case, case.sizes["count"]),), lambda x: torch.sort(x)
    shape = [case.sizes[name] for name in ("rows", "columns") if name in case.sizes]
    return lambda: (random_tensor(case, *shape),), lambda x: torch.cumsum(x, -1)
