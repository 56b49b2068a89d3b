"""Whole programs: profiling does not change their behaviour, and their captures are complete afterwards."""

import signal
import subprocess
import sys

import pytest
from conftest import needs_plain_allocator
from range_rows import range_rows

import marey

HEAD = """
import os, signal, sys, time
import marey
session = marey.Session()
session.start(output="out.marey")
def work(name, n=10):
    for _ in range(n):
        with marey.record_function(name):
            pass
"""


@pytest.fixture
def profiled(tmp_path):
    """Run a program that records into a capture; return its exit code and output, and the names in the capture."""

    def run(text, interrupt=False):
        program = tmp_path / "program.py"
        program.write_text(HEAD + text)
        process = subprocess.Popen(
            [sys.executable, str(program)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if interrupt:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        captures = {path.name: path for path in tmp_path.glob("*.marey")}
        return process.returncode, out, err, captures

    return run


def names(path):
    rows = range_rows(marey.load(str(path)))
    return [row["name"] for row in rows]


def test_a_program_that_raises(profiled):
    code, out, err, captures = profiled("""
with marey.record_function("outer"):
    work("inner")
    raise LookupError("on purpose")
""")
    assert code == 1 and err.rstrip().endswith("LookupError: on purpose")
    assert sorted(names(captures["out.marey"])) == ["inner"] * 10 + ["outer"]


def test_a_program_that_calls_os_exit(profiled):
    code, _, err, captures = profiled("""
open_range = marey.record_function("open")
open_range.__enter__()
work("inner")
os._exit(7)
""")
    assert (code, err) == (7, "")
    assert sorted(names(captures["out.marey"])) == ["inner"] * 10 + ["open"]


def test_a_program_that_is_killed(profiled):
    code, _, _, captures = profiled("""
work("inner")
os.kill(os.getpid(), signal.SIGKILL)
""")
    assert code == -signal.SIGKILL
    assert names(captures["out.marey"]) == ["inner"] * 10


def test_a_program_that_calls_sys_exit(profiled):
    code, _, err, captures = profiled("""
with marey.record_function("outer"):
    work("inner")
    sys.exit(3)
""")
    assert (code, err) == (3, "")
    assert sorted(names(captures["out.marey"])) == ["inner"] * 10 + ["outer"]


def test_a_program_that_is_interrupted(profiled):
    code, _, err, captures = profiled(
        """
try:
    with marey.record_function("outer"):
        work("inner")
        print("ready", flush=True)
        time.sleep(60)
finally:
    work("cleanup", 1)
""",
        interrupt=True,
    )
    assert code == -signal.SIGINT and "KeyboardInterrupt" in err
    assert sorted(names(captures["out.marey"])) == ["cleanup"] + ["inner"] * 10 + ["outer"]


def test_an_interrupt_in_the_middle_of_ranges_leaves_them_in_order(profiled):
    code, out, _, captures = profiled(
        """
try:
    print("ready", flush=True)
    while True:
        with marey.record_function("loop"):
            with marey.record_function_fast("inside"):
                pass
except KeyboardInterrupt:
    with marey.record_function("after"):
        pass
    trace = session.stop()
    print([event.cpu_parent for event in trace.events() if event.name == "after"])
""",
        interrupt=True,
    )
    assert (code, out) == (0, "[None]\n")


def test_a_program_that_forks(profiled):
    code, out, err, captures = profiled("""
with marey.record_function("outer"):
    child = os.fork()
    work("child" if child == 0 else "parent")
    if child == 0:
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert (code, out, err) == (0, "5\n", "")
    assert sorted(names(captures["out.marey"])) == ["outer"] + ["parent"] * 10
    assert list(captures) == ["out.marey"]


def test_a_range_handed_over_before_a_fork_ends_in_both(profiled):
    code, out, err, _ = profiled("""
import concurrent.futures
future = concurrent.futures.Future()
with marey.record_function("handed") as range_:
    target = range_.end_on_future(future)
child = os.fork()
future.set_result(1)
assert target.result() == 1
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
print(len(session.stop()))
""")
    assert (code, out, err) == (0, "0\n1\n", "")


@needs_plain_allocator
def test_memory_stays_flat_over_a_thousand_sessions(run_python):
    out = run_python("""
import gc, sys
import marey, os, asyncio
from concurrent.futures import Future

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

@marey.record_function("decorated")
def decorated():
    pass

@marey.record_function("generator")
def generator():
    yield 1

@marey.record_function("coroutine")
async def coroutine():
    pass

def once(i):
    session = marey.Session()
    session.start(record_shapes=True, concrete_inputs=True)
    for _ in range(20):
        with marey.record_function("with", "args"):
            decorated()
        with marey.record_function_fast("fast", [1, "a", [1.5]], {"k": i, "l": ["x"]}):
            pass
        marey.begin("begun")
        marey.end()
        list(generator())
        try:
            coroutine().send(None)
        except StopIteration:
            pass
        future = Future()
        with marey.record_function("future") as range_:
            target = range_.end_on_future(future)
        future.set_result(1)
    with marey.record_function("a name of its own %d" % i):
        pass
    assert len(session.stop()) == 20 * 10 + 1

for i in range(200):
    once(i)
gc.collect()
before, objects = resident(), len(gc.get_objects())
for i in range(200, 1200):
    once(i)
gc.collect()
print(resident() - before, len(gc.get_objects()) - objects)
""")
    grown, objects = map(int, out.split())
    assert grown < 8 << 20
    assert objects < 200
