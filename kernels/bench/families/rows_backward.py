"""Backward of softmax, log_softmax, layer_norm and rms_norm, of norms with the gradients of their weights."""
import torch
from bench import Case

MEASURES = ["kernels/cgrt_kernels/rows_backward", "kernels/bench/rows_backward.cpp"]
SHAPES = [(49152, 1024), (8192, 4096), (4096, 8192), (2048, 32768)]
aten = torch.ops.aten
PEERS = {"softmax_backward": "aten._softmax_backward_data", "log_softmax_backward": "aten._log_softmax_backward_data",
         "layer_norm_backward": "aten.native_layer_norm_backward", "rms_norm_backward": "aten._fused_rms_norm_backward"}


def case(kernel, type, rows, columns, target=0.0):
    size = 4 if type == "float32" else 2
    return Case(kernel, type, {"rows": rows, "columns": columns}, 3 * rows * columns * size, target, label=PEERS[kernel])


def cases():
    for rows, columns in SHAPES:
        for kernel in ("softmax_backward", "layer_norm_backward", "rms_norm_backward"):
            for type in ("float32", "float16"):
                yield case(kernel, type, rows, columns, 1.0)
    yield case("log_softmax_backward", "float32", 8192, 4096, 1.0)
    yield case("softmax_backward", "float32", 8192, 4097)
    yield case("rms_norm_backward", "bfloat16", 8192, 4096, 1.0)
    yield case("layer_norm_backward", "float32", 8192, 4097)


def peer(case):
    rows, columns, dtype = case.sizes["rows"], case.sizes["columns"], case.dtype
    weight, bias = (torch.randn(columns, device="cuda", dtype=dtype) for _ in range(2))

    def make_set():
        dy, x = (torch.randn(rows, columns, device="cuda", dtype=dtype) for _ in range(2))
        if case.kernel == "softmax_backward":
            return dy, torch.softmax(x, -1)
        if case.kernel == "log_softmax_backward":
            return dy, torch.log_softmax(x, -1)
        if case.kernel == "layer_norm_backward":
            return dy, x, *aten.native_layer_norm(x, [columns], weight, bias, 1e-5)[1:]
        return dy, x, aten._fused_rms_norm(x, [columns], weight, 1e-5)[1]

    return make_set, {
        "softmax_backward": lambda dy, y: aten._softmax_backward_data(dy, y, -1, dtype),
        "log_softmax_backward": lambda dy, y: aten._log_softmax_backward_data(dy, y, -1, dtype),
        "layer_norm_backward": lambda dy, x, mean, rstd: aten.native_layer_norm_backward(
            dy, x, [columns], mean, rstd, weight, bias, [True, True, True]),
        "rms_norm_backward": lambda dy, x, rstd: aten._fused_rms_norm_backward(
            dy, x, [columns], rstd, weight, [True, True]),
    }[case.kernel]
