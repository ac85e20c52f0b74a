"""A function jitted by JAX, whose command buffers are graphs of explicit nodes. It writes its result to its input."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp

import expected
import marks

key = jax.random.PRNGKey(0)
weights = [jax.random.normal(one, (1024, 1024)) * 0.03 for one in jax.random.split(key, 8)]
x, other = (jax.random.normal(one, (64, 1024)) for one in jax.random.split(key))


def step(x):
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return x


step = jax.jit(step, donate_argnums=0)
tensor = [x]


def replay():
    tensor[0] = step(tensor[0]).block_until_ready()


marks.input("x", x)
marks.output("y", x)
del x
expected.write([expected.Graph("jitted", replay, {"x": tensor}, {"x": [other]}, {"y": tensor})], expected.Jax())
