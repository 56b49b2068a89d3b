"""Ten million calls in a ring buffer: memory stays constant, and dropped events are counted."""

import os

import pytest
from conftest import needs_plain_allocator

import marey

CALLS = 10_000_000


def empty():
    pass


def many_calls(count):
    for _ in range(count):
        empty()


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@needs_plain_allocator
@pytest.mark.parametrize("ring", [512 << 20, 16 << 20])
def test_ten_million_calls_stay_within_their_ring_buffer_and_drops_are_counted(ring):
    with marey.profile(with_stack=True, c_calls=False, max_bytes=ring, policy="ring") as prof:
        before = resident()
        many_calls(CALLS)
        grown = resident() - before
    assert grown < min(ring, 16 * CALLS) * 1.1 + (8 << 20)
    kept = sum(event.count for event in prof.key_averages() if event.key.endswith(": empty"))
    overwritten = sum(count for code, _, count in prof.trace.problems if code == "overwritten")
    assert (kept == CALLS) == (overwritten == 0) == (ring > 16 * CALLS)


def endless():
    while True:
        yield


def resume(generators, count):
    for _ in range(count):
        for generator in generators:
            next(generator)


@pytest.mark.parametrize("c_calls", [False, True], ids=["python_calls", "c_calls"])
def test_every_resume_in_a_ring_belongs_to_its_generator(c_calls):
    """Most resumes only refer to an earlier record, which is in the same block."""
    generators = [endless() for _ in range(100)]
    with marey.profile(with_stack=True, c_calls=c_calls, max_bytes=2 << 20, policy="ring") as prof:
        resume(generators, 3000)
    calls = [call for call in prof.trace.suspended_calls() if call.name.endswith(": endless")]
    parts = sum(event.name.endswith(": endless") for event in prof.events())
    assert "overwritten" in [code for code, *_ in prof.trace.problems]
    assert len(calls) == 100
    assert sum(call.parts for call in calls) == parts > 10_000
    assert all(call.began_before and not call.finished for call in calls)


def resume_each_once(count):
    for _ in range(count):
        generator = endless()
        next(generator)
        next(generator)


@pytest.mark.parametrize(
    ("work", "limit"),
    [
        (lambda: resume([endless() for _ in range(1000)], 800), 20),
        (lambda: resume_each_once(100_000), 32),
    ],
    ids=["long_lived", "resumed_once"],
)
def test_resumes_of_generators_take_little_space(tmp_path, work, limit):
    def recorded(name, function):
        with marey.profile(with_stack=True, c_calls=False, output=tmp_path / name) as prof:
            function()
        return os.path.getsize(tmp_path / name), prof.trace

    unused, _ = recorded("empty.marey", lambda: None)  # room for other threads and for what comes next
    size, trace = recorded("app.marey", work)
    if trace.info()["clock"]["source"].startswith("monotonic"):
        pytest.skip("the kernel does not trust the CPU's counter, or has no /sys: every record is written out of line")
    parts = sum(call.parts for call in trace.suspended_calls() if call.name.endswith(": endless"))
    assert parts >= 200_000
    assert (size - unused) / parts <= limit
