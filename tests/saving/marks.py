"""Tells `graphdump save` what a graph's inputs and outputs are, and which memory PyTorch's allocator holds free.

Marks go through NVTX and cost nothing where nobody listens. Inputs and outputs count for the graphs that are
instantiated next; memory that is free is told again before the launch that is saved.
"""
import sys


def _mark(text):
    if "torch" in sys.modules:
        import torch

        torch.cuda.nvtx.mark(text)
    else:
        from cupy.cuda import nvtx

        nvtx.Mark(text)


def _address(tensor):
    for method in ("data_ptr", "unsafe_buffer_pointer"):
        if hasattr(tensor, method):
            return getattr(tensor, method)()
    return tensor.data.ptr


def _named(kind, name, tensor):
    dtype = str(tensor.dtype).removeprefix("torch.")
    shape = "x".join(str(extent) for extent in tensor.shape) or "1"
    _mark(f"cgrt:{kind}:{name}:{_address(tensor):#x}:{tensor.nbytes}:{dtype}:{shape}")


def input(name, tensor):
    """`tensor` is contiguous, as for output()."""
    _named("input", name, tensor)


def output(name, tensor):
    _named("output", name, tensor)


def dead():
    """Blocks of PyTorch's allocator that no tensor has. To be called after the capture."""
    import torch

    _mark("cgrt:dead:clear")
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                _mark(f"cgrt:dead:{block['address']:#x}:{block['size']}")
