"""CuPy: executables that are not what they were instantiated as any more: one is updated by another graph, and one has
the parameters of its nodes set."""
import ctypes

import cupy

import expected
import marks

driver = ctypes.CDLL("libcuda.so.1")
stream = cupy.cuda.Stream(non_blocking=True)
cupy.random.seed(0)


def called(function, *arguments):
    code = function(*arguments)
    if code != 0:
        raise RuntimeError(f"{function.__name__} returned {code}")


def capture(x, factor, y, names=()):
    stream.begin_capture()
    cupy.multiply(x, factor, out=y)
    for _ in range(3):
        cupy.add(y, x, out=y)
    for name, (kind, array) in zip(names, ((marks.input, x), (marks.output, y))):
        kind(name, array)
    return stream.end_capture()


def nodes_of(graph):
    count = ctypes.c_size_t()
    called(driver.cuGraphGetNodes, ctypes.c_void_p(graph), None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    called(driver.cuGraphGetNodes, ctypes.c_void_p(graph), nodes, ctypes.byref(count))
    return [ctypes.c_void_p(node) for node in nodes]


with stream:
    x, other = (cupy.random.rand(1 << 20, dtype=cupy.float32) for _ in range(2))
    y, z = cupy.empty_like(x), cupy.empty_like(x)
    cupy.add(cupy.multiply(x, 1.5, out=y), x, out=y)  # compiles what is captured
    stream.synchronize()
    updated, by = capture(x, 1.5, y, ("a", "b")), capture(x, 2.5, y)
    was_set, values = capture(x, 1.5, z, ("c", "d")), capture(x, 3.5, z)

info = (ctypes.c_byte * 64)()  # CUgraphExecUpdateResultInfo
called(driver.cuGraphExecUpdate_v2, ctypes.c_void_p(updated.graphExec), ctypes.c_void_p(by.graph), info)
params = (ctypes.c_byte * 128)()  # CUDA_KERNEL_NODE_PARAMS
called(driver.cuGraphKernelNodeGetParams_v2, nodes_of(values.graph)[0], params)
called(driver.cuGraphExecKernelNodeSetParams_v2, ctypes.c_void_p(was_set.graphExec), nodes_of(was_set.graph)[0], params)

framework = expected.Cupy(stream)
expected.write([expected.Graph("updated", lambda: updated.launch(stream), {"a": x}, {"a": other}, {"b": y}),
                expected.Graph("set", lambda: was_set.launch(stream), {"c": x}, {"c": other}, {"d": z})], framework)
