"""The transposition between heads and tokens around an attention, with and without padding."""
import torch
from case import DEVICE, SIZES, Case, random_tensor

MEASURES = ["kernels/cgrt_kernels/transpose_heads", "kernels/bench/transpose_heads.cpp"]


def case(kernel, type, sequences, positions, heads, head_size, length=0, **more):
    sizes = {"sequences": sequences, "positions": positions, "heads": heads, "head_size": head_size}
    moved = sequences * (length or positions) * heads * head_size
    written = sequences * positions * heads * head_size if kernel.startswith("split") else moved
    return Case(kernel, type, sizes | ({"length": length} if length else {}), (moved + written) * SIZES[type],
                label="index, permute" if length else "permute, contiguous", **more)


def cases():
    for kernel in ("merge_heads", "split_heads"):
        for type in ("float16", "float32"):
            yield case(kernel, type, 4, 2048, 32, 128)
            yield case(kernel, type, 32, 384, 12, 64)
            yield case(kernel, type, 128, 128, 16, 64)
        yield case(kernel, "bfloat16", 1, 8192, 64, 128)
        yield case(kernel, "float16", 32, 383, 12, 33)
        yield case(kernel, "float16", 8, 2, 32, 128)
        yield case(f"{kernel}_packed", "float16", 32, 384, 12, 64, length=200)
        yield case(f"{kernel}_packed", "bfloat16", 8, 2048, 32, 128, length=1200)
        yield case(f"{kernel}_packed", "float16", 32, 384, 1, 768, length=200)


def baseline(case):
    sequences, positions, heads, size = (
        case.sizes[name] for name in ("sequences", "positions", "heads", "head_size"))
    is_merge, is_packed = case.kernel.startswith("merge"), case.kernel.endswith("packed")
    length = case.sizes.get("length", positions)
    places = torch.arange(sequences * length, device=DEVICE)
    sequence, position = places // length, places % length
    at = torch.arange(positions, device=DEVICE)
    row = torch.arange(sequences, device=DEVICE)[:, None] * length + at.clamp(max=length - 1)
    is_token = (at < length)[:, None, None]

    def make_set():
        if is_merge:
            return (random_tensor(case, sequences, heads, positions, size),)
        return (random_tensor(case, sequences * length, heads, size),)

    def merge(x):
        return x.permute(0, 2, 1, 3).contiguous()

    def merge_packed(x):
        return x.permute(0, 2, 1, 3)[sequence, position]

    def split(x):
        return x.view(sequences, positions, heads, size).permute(0, 2, 1, 3).contiguous()

    def split_packed(x):
        return torch.where(is_token, x[row], 0).permute(0, 2, 1, 3).contiguous()

    return make_set, (merge_packed if is_packed else merge) if is_merge else (split_packed if is_packed else split)
