"""What a row of the bench is, and tensors that lie as kernelbench's arrays do."""
import dataclasses
import math

import torch

DEVICE = "cuda"
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64,
         "int32": torch.int32, "int64": torch.int64}
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "int32": 4, "int64": 8}  # bytes
PARITY = 1.0  # of an own kernel: as fast as the faster baseline
WRAPPER = 0.97  # of a library's operation as cgrt calls it: 3 % more than the library's own time


@dataclasses.dataclass
class Case:
    kernel: str
    type: str
    sizes: dict
    bytes: int  # that must move: each input once, each output once
    target: float = PARITY  # times as fast as the faster baseline; 0: none
    share: float = 0.0  # of the measured bandwidth, to be reached as well; 0: none
    is_limited: bool = False  # to be done in a time that follows from the bytes as well (bench.py)
    bandwidth: str = "copy"  # or "read", "write_four"; empty: none, as bytes move more than once
    chain: bool = False  # in place, each programmatically after the one before
    baseline: str = ""  # a kernel of kernelbench (own and library kernels alike); empty: the family's PyTorch
    label: str = ""  # of PyTorch's baseline
    compiles: bool = True  # False where torch.compile has no kernel of its own for it
    published: tuple = ()  # microseconds on an A100: the slower way's, and the published one's

    @property
    def dtype(self):
        return TYPES[self.type]

    @property
    def name(self):
        return f"{self.kernel}_{self.type}" + ("_chain" if self.chain else "")

    def __str__(self):
        other = self.baseline or self.label
        return f"{self.name} {self.sizes}" + (f" beside {other}" if other else "")


def random_tensor(case, *shape, dtype=None):
    """Of the case's type. Begins `shift` elements behind an aligned address, where the case has that size."""
    shift = case.sizes.get("shift", 0)
    return torch.randn(math.prod(shape) + shift, device=DEVICE, dtype=dtype or case.dtype)[shift:].view(shape)
