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
