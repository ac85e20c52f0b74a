"""Prefix sums of arrays and of rows; CUB's scan and radix sort as cgrt::cub has them."""
import torch
from bench import Case

MEASURES = ["kernels/cgrt_kernels/scan", "kernels/cgrt_kernels/cub", "kernels/bench/scan.cpp",
            "kernels/bench/raw_cub.cu"]

SIZE = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}


def case(kernel, type, sizes, target=0.0, peer="", label="cumsum"):
    count = sizes["count"] if "count" in sizes else sizes.get("rows", 1) * sizes["columns"]
    return Case(kernel, type, sizes, 2 * count * SIZE[type], target, peer=peer, label=label,
                ceiling="" if kernel == "radix_sort" else "copy")


def cases():
    for power in (16, 20, 24, 26, 28):
        array = {"columns": 1 << power}
        yield case("cub_scan", "float32", array, 0.97, peer="raw_cub_scan")
        yield case("scan", "float32", array)
        yield case("scan", "float16", array, 2.5 if power >= 26 else 0.0)
    for power in (20, 24, 28):
        yield case("scan", "float32", {"columns": 1 << power}, peer="raw_cub_scan")
    yield case("scan", "bfloat16", {"columns": 1 << 26}, 2.5)
    yield case("scan", "int32", {"columns": 1 << 26}, peer="cub_scan")
    yield case("scan", "int64", {"columns": 1 << 26}, peer="cub_scan")
    for rows, columns in ((8192, 4096), (256, 128256)):
        for type in ("float32", "float16", "bfloat16"):
            yield case("scan_rows", type, {"rows": rows, "columns": columns}, 1.5)
    for rows, columns in ((65536, 128), (4096, 16384), (8192, 4097)):
        yield case("scan_rows", "float32", {"rows": rows, "columns": columns})
    for power in (16, 20, 24, 28):
        yield case("radix_sort", "int32", {"count": 1 << power}, 0.97, peer="raw_cub_sort")
    yield case("radix_sort", "int32", {"count": 65536, "bits": 8}, 0.97, peer="raw_cub_sort")
    yield case("radix_sort", "float32", {"count": 1 << 24}, label="sort, with indices")


def peer(case):
    if case.kernel == "radix_sort":
        return lambda: (torch.randn(case.sizes["count"], device="cuda"),), lambda x: torch.sort(x)
    shape = [case.sizes[name] for name in ("rows", "columns") if name in case.sizes]
    return lambda: (torch.randn(shape, device="cuda", dtype=case.dtype),), lambda x: torch.cumsum(x, -1)
