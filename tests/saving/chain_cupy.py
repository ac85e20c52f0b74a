"""CuPy: elementwise kernels captured in a stream."""
import cupy

import expected
import marks

stream = cupy.cuda.Stream(non_blocking=True)
cupy.random.seed(0)
with stream:
    x = cupy.random.rand(1 << 20, dtype=cupy.float32)
    other = cupy.random.rand(1 << 20, dtype=cupy.float32)
    y = cupy.empty_like(x)

    def step():
        cupy.multiply(x, 1.5, out=y)
        for _ in range(4):
            cupy.add(y, x, out=y)
            cupy.sqrt(y, out=y)

    step()  # compiles what is captured
    stream.synchronize()
    stream.begin_capture()
    step()
    marks.input("x", x)
    marks.output("y", y)
    graph = stream.end_capture()

expected.write([expected.Graph("chain", lambda: graph.launch(stream), {"x": x}, {"x": other}, {"y": y})],
               expected.Cupy(stream))
