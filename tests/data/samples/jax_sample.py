"""Makes tests/data/corpus/chrome/jax.json.gz: python jax_sample.py OUT.json.gz (needs the package jax; a build for the CPU will do).

One jitted function, called three times under jax.profiler, whose Perfetto trace is cut down to what the calls left.
"""

import gzip
import json
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp

step = jax.jit(lambda x: jnp.sin(x) @ x)
value = jnp.ones((8, 8))
step(value).block_until_ready()
with tempfile.TemporaryDirectory() as folder:
    with jax.profiler.trace(folder):
        for number in range(3):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                step(value).block_until_ready()
    path = next(pathlib.Path(folder).rglob("*.trace.json.gz"))
    trace = json.loads(gzip.open(path).read())
# The profiler records its own start and stop, thousands of Python calls.
trace["traceEvents"] = [event for event in trace["traceEvents"] if not event.get("name", "").startswith("$")]
with open(sys.argv[1], "wb") as out:
    out.write(gzip.compress(json.dumps(trace, indent=0).encode(), mtime=0))
print(len(trace["traceEvents"]), "events")
