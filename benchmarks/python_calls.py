"""python_calls.py: overhead of recording every Python call, compared with minimal hooks that store the counter."""

import cProfile
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import call_workloads

import marey

COUNT = 100_000
ROUNDS = 15


def build_floor():
    """Compile python_call_floor.c with the system's compiler and import it."""
    source = Path(__file__).with_name("python_call_floor.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / ("python_call_floor" + sysconfig.get_config_var("EXT_SUFFIX"))
        include = sysconfig.get_path("include")
        compiler = os.environ.get("CC", "cc")
        command = [compiler, "-O2", "-fPIC", "-shared", f"-I{include}", str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        spec = importlib.util.spec_from_file_location("python_call_floor", library)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def empty():
    pass


def calls():
    for _ in range(COUNT):
        empty()


def c_calls():
    items = []
    for _ in range(COUNT):
        len(items)


def resumes():
    generators = [call_workloads.numbers(COUNT) for _ in range(100)]
    call_workloads.resume_in_turn(generators, COUNT // 100)


def recursive():
    call_workloads.recursive()


def threads():
    call_workloads.on_threads(call_workloads.recursive)


def no_calls():
    total = 0
    items = [1, 2, 3]
    for i in range(COUNT):
        total += items[i % 3] * i
        if total > 1_000_000:
            total -= 1_000_000


def ns(work):
    """CPU time of one iteration of the loop, on all threads."""
    begin = time.process_time_ns()
    work()
    return (time.process_time_ns() - begin) / COUNT


class Tracer:
    def __init__(self, c_calls):
        self.c_calls = c_calls

    def __enter__(self):
        self.session = marey.Session()
        self.session.start(max_bytes=4 << 20, policy="ring", with_stack=True, c_calls=self.c_calls)

    def __exit__(self, *error):
        self.session.discard()


class Nothing:
    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


class Floor:
    def __init__(self, switch):
        self.switch = switch

    def __enter__(self):
        self.switch(True)

    def __exit__(self, *error):
        self.switch(False)


class VizTracer:
    """VizTracer, for comparison: every Python call, no C calls, an ordinary buffer."""

    def __init__(self, module):
        self.make = lambda: module.VizTracer(tracer_entries=4 * COUNT, ignore_c_function=True, verbose=0)

    def __enter__(self):
        self.tracer = self.make()
        self.tracer.start()

    def __exit__(self, *error):
        self.tracer.stop()
        self.tracer.clear()


class Monitoring:
    """The same sys.monitoring events as the tracer, disabled at the same places, with bodies that only store."""

    PYTHON = ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND")

    def __init__(self, floor, c_calls):
        self.monitoring = sys.monitoring
        self.bits = {name: getattr(sys.monitoring.events, name) for name in self.PYTHON}
        self.callbacks = dict.fromkeys(self.bits, floor.on_event)
        floor.take_disable(sys.monitoring.DISABLE)
        if c_calls:
            self.bits["CALL"] = sys.monitoring.events.CALL
            self.callbacks |= {"CALL": floor.on_call, "C_RETURN": floor.on_event, "C_RAISE": floor.on_event}

    def __enter__(self):
        self.monitoring.use_tool_id(4, "floor")
        for name, callback in self.callbacks.items():
            self.monitoring.register_callback(4, getattr(self.monitoring.events, name), callback)
        self.monitoring.set_events(4, sum(self.bits.values()))

    def __exit__(self, *error):
        self.monitoring.set_events(4, 0)
        for name in self.callbacks:
            self.monitoring.register_callback(4, getattr(self.monitoring.events, name), None)
        self.monitoring.free_tool_id(4)


def traced_ns(work, tracer):
    """The time of `work` under the tracer; the first runs let the interpreter specialise for the current hooks."""
    with tracer:
        work()
        work()
        return ns(work)


def print_figure(name, value, against, against_value, ratio, target):
    figure = {"name": name, "value": value, "unit": "ns", "against": against, "against_value": against_value}
    print(json.dumps({**figure, "ratio": ratio, "target": target}), flush=True)


def compare(name, work, tracer, floor, against, target):
    """Compare the overhead of the tracer and of the floor per iteration, measured alternately.

    The ratio is the median over rounds, because changes in machine speed affect both sides of a round.
    """
    added, floors = [], []
    work()
    for _ in range(ROUNDS):
        gc.collect()
        plain = traced_ns(work, Nothing())
        floors.append(traced_ns(work, floor) - plain)
        added.append(traced_ns(work, tracer) - plain)
    ratio = statistics.median(a / b for a, b in zip(added, floors))
    print_figure(name, statistics.median(added), against, statistics.median(floors), ratio, target)


def compare_time(name, work, tracer, target):
    """Compare the time of the whole loop with and without a tracer."""
    plain, traced = [], []
    work()
    for _ in range(ROUNDS):
        plain.append(traced_ns(work, Nothing()))
        traced.append(traced_ns(work, tracer))
    ratio = statistics.median(a / b for a, b in zip(traced, plain))
    print_figure(name, statistics.median(traced), "the same without a tracer", statistics.median(plain), ratio, target)


def compare_resumes(tracer):
    """Compare what recording adds to a resume with what it adds to a call."""
    resumed, called = [], []
    for _ in range(ROUNDS):
        gc.collect()
        resumed.append(traced_ns(resumes, tracer) - traced_ns(resumes, Nothing()))
        called.append(traced_ns(calls, tracer) - traced_ns(calls, Nothing()))
    ratio = statistics.median(a / b for a, b in zip(resumed, called))
    name = f"resume_3{sys.version_info.minor}"
    print_figure(name, statistics.median(resumed), "a Python call", statistics.median(called), ratio, "<= 1.3")


def workloads(tracer):
    """Compare whole programs with and without a tracer."""
    compare_time("calls_recursive", recursive, tracer, None)
    compare_time("calls_mix", call_workloads.mix, tracer, None)
    compare_time("calls_threads", threads, tracer, None)


def floor_with_c_calls(floor):
    """The minimal hook that receives both Python calls and C calls."""
    return Floor(floor.profile) if sys.version_info < (3, 12) else Monitoring(floor, True)


def main():
    floor = build_floor()
    with_c_calls = floor_with_c_calls(floor)
    if sys.version_info < (3, 12):
        frames = Floor(floor.frames)
        against = "PEP 523 hook that stores 2 x 16 bytes"
        compare("call_311", calls, Tracer(False), frames, against, "<= 1.6")
        compare("call_311_vs_cprofile", calls, Tracer(False), cProfile.Profile(), "cProfile", "<= 0.2")
        if importlib.util.find_spec("viztracer"):
            viztracer = VizTracer(importlib.import_module("viztracer"))
            compare("call_311_vs_viztracer", calls, Tracer(False), viztracer, "VizTracer", "<= 0.2")
        else:
            print("call_311_vs_viztracer skipped: viztracer is not installed")
        compare("call_311_c", calls, Tracer(True), with_c_calls, "profile hook that stores 2 x 16 bytes", "<= 1.15")
        compare("ccall_311", c_calls, Tracer(True), with_c_calls, "profile hook that stores 2 x 16 bytes", "<= 1.25")
        compare_resumes(Tracer(False))
        compare_time("no_calls_311", no_calls, Tracer(False), "<= 1.05")
        workloads(Tracer(False))
    else:
        against = "sys.monitoring callables that store 2 x 16 bytes"
        compare("call_312", calls, Tracer(True), with_c_calls, against, "<= 1.25")
        compare("ccall_312", c_calls, Tracer(True), with_c_calls, against, "<= 1.25")
        compare("call_312_python", calls, Tracer(False), Monitoring(floor, False), against, None)
        compare_resumes(Tracer(False))  # a resume calls next(), a call no C function
        compare_time("no_calls_312", no_calls, Tracer(True), None)
        workloads(Tracer(True))


if __name__ == "__main__":
    sys.exit(main())
