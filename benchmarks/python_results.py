"""python_results.py: from a million recorded ranges to a table, to event objects and to a Chrome trace."""

import gc
import json
import os
import statistics
import tempfile
import time

import marey
from marey.results.trace_events import events_of

RANGES = 1_000_000
ROUNDS = 7
NAMES = [f"name {i}" for i in range(100)]


class Bare:
    """A plain Python object with two fields, as the baseline."""

    __slots__ = ("name", "length")

    def __init__(self, name, length):
        self.name = name
        self.length = length


def record():
    """A running session that has recorded the ranges."""
    session = marey.Session()
    session.start()
    record_function = marey.record_function
    for _ in range(RANGES // (2 * len(NAMES))):
        for name in NAMES:
            with record_function("outer"):
                with record_function(name):
                    pass
    return session


def stop_to_table(session):
    """(seconds, trace)"""
    start = time.perf_counter()
    trace = session.stop()
    table = trace.key_averages().table(sort_by="self_cpu_time_total")
    taken = time.perf_counter() - start
    assert "outer" in table
    return taken, trace


def make_events(trace):
    """Microseconds per event to create all events and read their names and times."""
    events = events_of(trace)
    assert len(events) == RANGES
    start = time.perf_counter()
    for event in events:
        event.name
        event.cpu_time_total
    return (time.perf_counter() - start) / RANGES * 1e6


def make_bare(trace):
    """The same for plain objects created with both values."""
    start = time.perf_counter()
    for _ in range(RANGES):
        bare = Bare("name", 1.0)
        bare.name
        bare.length
    return (time.perf_counter() - start) / RANGES * 1e6


def export(trace):
    """Nanoseconds per range."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        trace.export_chrome_trace(os.path.join(folder, "trace.json"))
        return (time.perf_counter() - start) / RANGES * 1e9


def main():
    tables, objects, bare, exports = [], [], [], []
    for _ in range(ROUNDS):
        taken, trace = stop_to_table(record())
        tables.append(taken)
        objects.append(make_events(trace))
        bare.append(make_bare(trace))
        exports.append(export(trace))
        del trace
        gc.collect()
    figures = (
        {
            "name": "py_stop_to_table",
            "value": statistics.median(tables),
            "unit": "s",
            "target": "<= 0.2 s",
        },
        {
            "name": "py_event_object",
            "value": statistics.median(objects),
            "unit": "us",
            "against": "a Python object with slots",
            "against_value": statistics.median(bare),
            "ratio": statistics.median(a / b for a, b in zip(objects, bare)),
            "target": "<= 2 us",
        },
        {
            "name": "py_export_chrome",
            "value": statistics.median(exports),
            "unit": "ns",
            "target": "<= 120 ns",
        },
    )
    for figure in figures:
        print(json.dumps(figure))


if __name__ == "__main__":
    main()
