"""python_call_results.py: size of recorded Python calls, and the time from the stop to a table."""

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import call_workloads

import marey
from marey._trace_events import averages_of

CALLS = 1_000_000
ROUNDS = 5
C_CALLS = sys.version_info >= (3, 12)


def empty():
    pass


def many_calls():
    for _ in range(CALLS):
        empty()


def start(**options):
    session = marey.Session()
    session.start(with_stack=True, c_calls=C_CALLS, **options)
    return session


def print_figure(name, value, unit, target, **more):
    build = sysconfig.get_config_var("CONFIG_ARGS") or ""
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    optimised = " ".join(word for word in ("--enable-optimizations", "--with-lto", "--enable-shared") if word in build)
    figure = {"name": name, "value": value, "unit": unit, "target": target, **more}
    print(json.dumps({**figure, "interpreter": f"{interpreter} ({optimised or 'no options'})"}), flush=True)


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def log_bytes():
    """Growth of the process while a million calls are recorded."""
    session = start()
    call_workloads.recursive()
    before = resident()
    many_calls()
    grown = resident() - before
    session.discard()
    print_figure("call_bytes", grown / CALLS, "bytes", "<= 24")


def stop_to_table():
    taken = []
    for _ in range(ROUNDS):
        session = start()
        many_calls()
        begin = time.perf_counter()
        table = averages_of(session.stop()).table(sort_by="self_cpu_time_total")
        taken.append(time.perf_counter() - begin)
        assert "empty" in table
        gc.collect()
    print_figure("call_stop_to_table", statistics.median(taken), "s", "<= 0.2 s")


def capture_bytes():
    command = Path(os.environ["MAREY_BUILD_DIR"]) / "marey" if "MAREY_BUILD_DIR" in os.environ else "marey"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mix.marey")
        session = start(output=path)
        for _ in range(20):
            call_workloads.mix()
        calls = len(session.stop())
        packed = os.path.join(folder, "packed.marey")
        subprocess.run([command, "compact", path, "-o", packed], check=True, capture_output=True)
        print_figure("call_capture_bytes", os.path.getsize(packed) / calls, "bytes", "<= 4")


def added_per_call(work):
    """Nanoseconds that recording adds to each range of `work`."""
    begin = time.thread_time_ns()
    work()
    plain = time.thread_time_ns() - begin
    session = start(max_bytes=1 << 30)
    begin = time.thread_time_ns()
    work()
    traced = time.thread_time_ns() - begin
    return (traced - plain) / len(session.stop())


def tasks():
    at_once, in_turn = [], []
    for _ in range(ROUNDS):
        in_turn.append(added_per_call(call_workloads.tasks_in_turn))
        at_once.append(added_per_call(call_workloads.tasks_at_once))
        gc.collect()
    value, against = statistics.median(at_once), statistics.median(in_turn)
    more = {"against": "the same bodies awaited in turn", "against_value": against, "ratio": value / against}
    print_figure("task_asyncio", value, "ns", "<= 1.5", **more)


if __name__ == "__main__":
    log_bytes()
    stop_to_table()
    capture_bytes()
    tasks()
