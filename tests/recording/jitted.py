"""A function jitted by JAX, whose command buffers are graphs of explicit nodes."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_graph_min_graph_size=1")
import jax
import jax.numpy as jnp


@jax.jit
def step(x, w):
    for _ in range(4):
        x = jnp.tanh(x @ w) + jnp.sin(x)
        x = x / (1 + jnp.abs(x).sum(axis=-1, keepdims=True))
    return x


x = jnp.ones((256, 512), jnp.float32)
w = jnp.ones((512, 512), jnp.float32) * 0.01
for _ in range(10):
    x = step(x, w)
print("jitted:", x.shape, bool(jnp.isfinite(x).all()))
