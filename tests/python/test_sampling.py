"""Samples of Python programs: shares, frames in one order, and no crash wherever the signal comes."""

import subprocess
import sys

import pytest

pa = pytest.importorskip("pyarrow")

BURN = """
import time

def burn_most(until):
    while time.thread_time() < until:
        sum(range(200))

def burn_some(until):
    while time.thread_time() < until:
        sum(range(200))

def burn_little(until):
    while time.thread_time() < until:
        sum(range(200))

def run(rounds=10):
    for _ in range(rounds):
        for function, seconds in ((burn_most, 0.07), (burn_some, 0.02), (burn_little, 0.01)):
            function(time.thread_time() + seconds)
"""

READ = """
import collections

class Samples:
    def __init__(self, trace):
        names = "samples", "sample_stacks", "sample_frames", "sampling"
        self.samples, stacks, frames, self.sampling = (trace.to_arrow(name).to_pydict() for name in names)
        self.stacks = []
        for frame, outer in zip(stacks["frame"], stacks["outer"]):
            around = self.stacks[outer] if outer is not None else ()
            name = frames["name"][frame]
            self.stacks.append(((name if frames["module"][frame] else name.split("): ")[-1]),) + around)

    def cpu_by_function(self):
        cpu = collections.Counter()
        for stack, ns in zip(self.samples["stack"], self.samples["cpu_ns"]):
            for name in set(self.stacks[stack]) if stack is not None else ():
                cpu[name] += ns
        return cpu
"""


def shares_of(cpu):
    names = ["burn_most", "burn_some", "burn_little"]
    total = sum(cpu[name] for name in names)
    return [cpu[name] / total for name in names]


def check_shares(shares):
    assert shares == pytest.approx([0.7, 0.2, 0.1], abs=0.06), shares


def test_functions_have_their_shares_of_the_cpu_time(run_python):
    text = (
        BURN
        + READ
        + """
import marey
with marey.profile(sample=1000) as profile:
    run()
samples = Samples(profile.trace)
cpu = samples.cpu_by_function()
print([cpu[name] for name in ("burn_most", "burn_some", "burn_little")], cpu["run"])
assert samples.sampling["lost"] == [0], samples.sampling
"""
    )
    values, around = run_python(text).rsplit(" ", 1)
    values = eval(values)
    check_shares([value / sum(values) for value in values])
    assert int(around) >= 0.9 * sum(values)


def test_samples_are_in_the_range_that_was_open(run_python):
    text = (
        BURN
        + READ
        + """
import marey
with marey.profile(sample=1000) as profile:
    with marey.record_function("outer"):
        burn_some(time.thread_time() + 0.1)
        with marey.record_function("inner"):
            burn_most(time.thread_time() + 0.2)
samples = Samples(profile.trace)
ranges = profile.trace.to_arrow("ranges").to_pydict()["name"]
found = {ranges[row] for row, stack in zip(samples.samples["range"], samples.samples["stack"])
         if stack is not None and "burn_most" in samples.stacks[stack] and row is not None}
assert found == {"inner"}, found
"""
    )
    run_python(text)


def test_threads_of_a_blocked_main_thread_are_named(run_python):
    text = (
        BURN
        + READ
        + """
import threading, marey
with marey.profile(sample=1000) as profile:
    thread = threading.Thread(target=lambda: burn_most(time.thread_time() + 0.3))
    thread.start()
    thread.join()
cpu = Samples(profile.trace).cpu_by_function()
assert cpu["burn_most"] > 0.2e9, cpu
"""
    )
    run_python(text)


STORM = """
import threading, time, types, marey

EDGES = {
    "producer": {"consumer", "lopsided"},
    "nested": {"producer", "nested", "lopsided"},  # which closes the innermost one first
    "consumer": {"storm"},
    "lopsided": {"storm"},
    "raises": {"raises", "catches"},
    "catches": {"storm"},
    "made": {"storm"},
    "awaited": {"outer_coroutine", "<listcomp>"},  # which is a function of its own before 3.12
    "<listcomp>": {"outer_coroutine"},
    "outer_coroutine": {"storm"},
    "storm": {"run", "<lambda>"},
}

def nested(depth):
    if depth:
        yield from nested(depth - 1)
    yield depth

def producer(count):
    for i in range(count):
        yield from nested(i % 7)

def consumer():
    return sum(producer(20))

def lopsided():
    made = producer(1000)
    for _ in range(15):
        next(made)
    del made

def raises(depth):
    if depth:
        raises(depth - 1)
    raise KeyError(depth)

def catches():
    try:
        raises(12)
    except KeyError:
        pass

async def awaited(depth):
    return depth

async def outer_coroutine():
    return [await awaited(i) for i in range(10)]

def storm(until):
    while time.monotonic() < until:
        consumer()
        lopsided()
        catches()
        scope = {}
        exec("def made(n):\\n    return sum(range(n))", scope)
        scope["made"](300)
        try:
            outer_coroutine().send(None)
        except StopIteration:
            pass

with marey.profile(sample=10000) as profile:
    until = time.monotonic() + 4
    threads = [threading.Thread(target=lambda: storm(until)) for _ in range(2)]
    for thread in threads:
        thread.start()
    storm(until)
    for thread in threads:
        thread.join()
"""


def test_every_edge_of_a_storm_is_one_that_the_program_can_have(run_python):
    text = (
        READ
        + STORM
        + """
samples = Samples(profile.trace)
wrong = collections.Counter()
edges = 0
for stack in samples.samples["stack"]:
    names = [name for name in samples.stacks[stack] if name in EDGES or "+0x" not in name] if stack is not None else []
    names = [name.split(".")[-1] for name in names]
    for inner, outer in zip(names, names[1:]):
        if inner in EDGES and outer != "??":  # code that ended before it was named
            edges += 1
            if outer not in EDGES[inner] | {"<module>"}:
                wrong[inner, outer] += 1
count = len(samples.samples["stack"])
torn = samples.sampling["torn"][0]
print(count, torn, edges, dict(wrong))
assert count > 1000, count
assert torn < 0.01 * count, (torn, count)
assert sum(wrong.values()) < 0.001 * edges, wrong
"""
    )
    run_python(text)


def test_the_interpreter_ends_while_threads_run(run_python):
    for _ in range(5):
        run_python("""
import threading, marey, marey.profiler

def spin():
    while True:
        sum(range(100))

profile = marey.profile(sample=10000)
profile.start()
for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
sum(range(2000000))
""")


def run_sampled(tmp_path, *words, text=None):
    capture = tmp_path / "out.marey"
    if text is not None:
        (tmp_path / "x.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "marey", "run", "-q", "-o", str(capture), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return capture, done


def cpu_of(run_python, capture):
    text = (
        READ
        + f"""
import marey
samples = Samples(marey.load({str(capture)!r}))
print(dict(samples.cpu_by_function()))
"""
    )
    return eval(run_python(text))


def test_run_samples_a_python_program_without_its_calls(tmp_path, run_python):
    capture, _ = run_sampled(tmp_path, "--sample", "x.py", text=BURN + "run(5)\n")
    check_shares(shares_of(cpu_of(run_python, capture)))
    text = f"import marey; print(len(marey.load({str(capture)!r}).to_arrow('ranges')))"
    assert run_python(text) == "0\n"


def test_run_records_calls_and_samples_together(tmp_path, run_python):
    capture, _ = run_sampled(tmp_path, "--sample=500", "--calls", "x.py", text=BURN + "run(5)\n")
    check_shares(shares_of(cpu_of(run_python, capture)))
    text = f"import marey; print(len(marey.load({str(capture)!r}).to_arrow('ranges')) > 0)"
    assert run_python(text) == "True\n"


def test_run_samples_any_program(tmp_path, run_python):
    words = ["--", "/bin/sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 0"]
    capture, _ = run_sampled(tmp_path, "--sample", *words)
    text = (
        READ
        + f"""
import marey
samples = Samples(marey.load({str(capture)!r}))
print(sum(samples.samples["cpu_ns"]))
"""
    )
    assert int(run_python(text)) > 0


def test_an_impossible_rate_is_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "marey", "run", "--sample=often", "x.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "invalid rate 'often'" in done.stderr
