"""A training in JAX on the CPU, traced by its profiler: `record.py FOLDER`; see tests/real/PROVENANCE.md."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

WEIGHTS = jnp.full((256, 256), 1e-3)


@jax.jit
def train(weights, rows):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(rows @ w @ w) ** 2))(weights)
    return weights - 0.1 * gradient, loss


def batch():
    time.sleep(0.02)
    return np.ones((512, 256), np.float32)


weights, _ = train(*train(WEIGHTS, batch())[:1], batch())
options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0
clock = []
with jax.profiler.trace(sys.argv[1], profiler_options=options):
    for number in range(8):
        begin = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            weights, loss = train(weights, batch())
            loss.block_until_ready()
        clock.append(time.perf_counter() - begin)
print("steps", round(sum(clock), 4))
