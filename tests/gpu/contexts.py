"""Contexts that a program creates after the session began: their work is recorded, and so are unified memory copies.

Uses only the CUDA driver, through ctypes. Exits with 1 if something is missing.
"""

import ctypes
import sys

import marey

BYTES = 1 << 24
SETS = 20


def call(function, *arguments):
    result = getattr(driver, function)(*arguments)
    if result != 0:
        raise SystemExit(f"{function} returned error {result}")


def work():
    """Creates a context, and device and managed memory that the GPU sets and the CPU reads."""
    context, own, shared = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    call("cuMemAlloc_v2", ctypes.byref(own), ctypes.c_size_t(BYTES))
    session.snapshot()  # Marey has seen the context by now
    call("cuMemAllocManaged", ctypes.byref(shared), ctypes.c_size_t(BYTES), 1)
    ctypes.memset(shared.value, 1, BYTES)
    with marey.record_function("sets"):
        for _ in range(SETS):
            call("cuMemsetD8Async", own, 3, ctypes.c_size_t(BYTES), None)
        call("cuMemsetD8Async", shared, 2, ctypes.c_size_t(BYTES), None)
    return shared


driver = ctypes.CDLL("libcuda.so.1")
session = marey.Session()
session.start(devices=["cuda"], profile_memory=True)
shared = work()
trace = session.stop()  # waits for the sets
call("cuCtxSynchronize")
if ctypes.string_at(shared.value, 4) != b"\2\2\2\2":
    raise SystemExit("the GPU did not set the memory")

counts, launched_in = {}, {}
for event in trace.events():
    counts[event.name] = counts.get(event.name, 0) + 1
    if event.kernels:
        launched_in[event.name] = launched_in.get(event.name, 0) + len(event.kernels)
print(counts, launched_in, trace.problems, trace.metadata.get("gpu_clock"))
bad = []
if launched_in != {"sets": SETS + 1}:
    bad.append("sets are not under the range that launched them")
if counts.get("Memset (Device)", 0) != SETS:
    bad.append("device sets are missing")
if not any("unified memory" in name for name in counts):
    bad.append("unified memory copies are missing")
if "gpu_clock" not in trace.metadata:
    bad.append("the device clock is missing")
if any(code in ("device_work_missing", "dropped") for code, _, _ in trace.problems):
    bad.append("the trace is incomplete")
print("contexts: all passed" if not bad else "FAILED: " + ", ".join(bad))
sys.exit(1 if bad else 0)
