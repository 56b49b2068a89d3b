"""Records what planted_causes.py and even_programs.py contain."""

from running import plain, write

# Takes long to import.
BIG_LIBRARY = """
for i in range(8_000_000):
    i * i
"""

# Importing the standard library is not part of the recording: on a busy machine, it would be a finding.
RECORD = """
import asyncio, concurrent.futures.thread, encodings.idna, gc, json, selectors, socket, subprocess, sys, threading, time
import marey, marey.recording.step_loop

options = json.loads(sys.argv[1])
code = compile(open("program.py").read(), "program.py", "exec")
with marey.profile(with_stack=True, **{"c_calls": False, **options}) as prof:
    exec(code, {"__name__": "__main__"})
prof.trace.save("it.marey")
"""


def record(folder, text, options="{}"):
    """Run a program under the profiler, with options as JSON; its trace is it.marey."""
    for file, content in (("big_library.py", BIG_LIBRARY), ("program.py", text), ("record.py", RECORD)):
        write(folder, content, file)
    errors, code = plain(["record.py", options], folder)[1:]
    assert code == 0, errors
