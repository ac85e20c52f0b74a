"""CuPy: kernels captured in a stream."""
import cupy

stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    x = cupy.ones((1 << 20,), cupy.float32)
    y = cupy.empty_like(x)
    for _ in range(2):  # compiles what is captured
        cupy.multiply(x, 2, out=y)
        cupy.add(y, x, out=y)
        cupy.sqrt(y, out=y)
    stream.synchronize()
    stream.begin_capture()
    for _ in range(4):
        cupy.multiply(x, 2, out=y)
        cupy.add(y, x, out=y)
        cupy.sqrt(y, out=y)
    graph = stream.end_capture()
    for _ in range(10):
        graph.launch(stream)
    stream.synchronize()
print("cupy:", float(y[0]))
