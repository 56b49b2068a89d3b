"""python_call_results.py: size of recorded Python calls and resumes, and the time to summarize them."""

import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import call_workloads

import marey

CALLS = 1_000_000
ROUNDS = 5
C_CALLS = sys.version_info >= (3, 12)


def empty():
    pass


def many_calls():
    for _ in range(CALLS):
        empty()


RESUMES = 800_000


def many_resumes():
    """Resumes of 400 generators that live throughout."""
    generators = [call_workloads.numbers(RESUMES) for _ in range(400)]
    call_workloads.resume_in_turn(generators, RESUMES // 400)


def many_resumed_once():
    """Calls that are suspended and resumed once: two parts each."""
    for _ in range(RESUMES // 2):
        for _ in call_workloads.numbers(1):
            pass


def start(c_calls=C_CALLS, **options):
    session = marey.Session()
    session.start(with_stack=True, c_calls=c_calls, **options)
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


def resume_bytes(name, work, target):
    """Size of a capture, per part of a call."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "resumes.marey")
        session = start(output=path, c_calls=False)
        work()
        session.stop()
        print_figure(name, os.path.getsize(path) / RESUMES, "bytes", target)


def stop_to_table():
    taken = []
    for _ in range(ROUNDS):
        session = start()
        many_calls()
        begin = time.perf_counter()
        table = session.stop().key_averages().table(sort_by="self_cpu_time_total")
        taken.append(time.perf_counter() - begin)
        assert "empty" in table
        gc.collect()
    print_figure("call_stop_to_table", statistics.median(taken), "s", "<= 0.2 s")


def command():
    return Path(os.environ["MAREY_BUILD_DIR"]) / "marey" if "MAREY_BUILD_DIR" in os.environ else "marey"


def run_seconds(capture, *options):
    """CPU seconds of `marey run` for a program that only puts a finished capture in the place of its own."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "copy.marey")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [command(), "run", *options, "-o", output, "--", "cp", capture, output]
        subprocess.run(words, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def summary():
    """CPU time of the closing summary of `marey run`, per million ranges: the lowest of many rounds.

    On a busy machine the others differ by up to 70%, because other programs use the same caches.
    """
    with tempfile.TemporaryDirectory() as folder:
        captures = []
        for work in (many_calls, many_resumes):
            captures.append(os.path.join(folder, work.__name__ + ".marey"))
            session = start(output=captures[-1], c_calls=False)
            work()
            session.stop()
        rounds = []
        for _ in range(3 * ROUNDS):
            rounds.append([(run_seconds(capture), run_seconds(capture, "-q")) for capture in captures])
    calls, resumes = (
        (min(each[i][0] for each in rounds) - min(each[i][1] for each in rounds)) * 1_000_000 / count
        for i, count in enumerate((CALLS, RESUMES))
    )
    print_figure("run_summary", calls, "s", "<= 0.08 s")
    more = {"against": "the same for calls", "against_value": calls, "ratio": resumes / calls}
    print_figure("run_summary_resumes", resumes, "s", "<= 0.08 s", **more)


def capture_bytes():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mix.marey")
        session = start(output=path)
        for _ in range(20):
            call_workloads.mix()
        calls = len(session.stop())
        packed = os.path.join(folder, "packed.marey")
        subprocess.run([command(), "compact", path, "-o", packed], check=True, capture_output=True)
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
    resume_bytes("resume_bytes", many_resumes, "<= 20")
    resume_bytes("resumed_once_bytes", many_resumed_once, "<= 32")
    stop_to_table()
    summary()
    capture_bytes()
    tasks()
