"""python_ranges.py: cost of marking a range from Python, compared with plain C that reads the counter and stores."""

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

import marey

COUNT = 100_000
ROUNDS = 31
COLUMN_BYTES = 38  # bytes per range in a trace: three times, site, parent, depth, flags


def build_floor():
    """Compile python_floor.c with the system's compiler and import it."""
    source = Path(__file__).with_name("python_floor.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / ("python_floor" + sysconfig.get_config_var("EXT_SUFFIX"))
        compiler = os.environ.get("CC", "cc")
        include = sysconfig.get_path("include")
        command = [compiler, "-O2", "-fPIC", "-shared", f"-I{include}", str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        spec = importlib.util.spec_from_file_location("python_floor", library)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def blocks(make):
    for _ in range(COUNT):
        with make("benchmark"):
            pass


def reused(block):
    for _ in range(COUNT):
        with block:
            pass


def pairs(functions):
    begin, end = functions
    for _ in range(COUNT):
        begin("benchmark")
        end()


def calls(function):
    for _ in range(COUNT):
        function()


def plain():
    pass


def ns(work, subject):
    """CPU time of one iteration of the loop."""
    begin = time.thread_time_ns()
    work(subject)
    return (time.thread_time_ns() - begin) / COUNT


def compare(name, work, subject, floor, against, target, is_on):
    """Print one figure, measured alternately with its baseline; the ratio is the median over rounds."""
    session = marey.Session()
    if is_on:
        session.start(max_bytes=4 << 20, policy="ring")  # small, so that its memory stays warm
    ns(work, subject), ns(work, floor)
    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(ns(work, floor))
        values.append(ns(work, subject))
    if is_on:
        session.discard()
    print(
        json.dumps(
            {
                "name": name,
                "value": statistics.median(values),
                "unit": "ns",
                "against": against,
                "against_value": statistics.median(floors),
                "ratio": statistics.median(a / b for a, b in zip(values, floors)),
                "target": target,
            }
        ),
        flush=True,
    )


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory():
    """Growth of the process while a million ranges are recorded, and after the stop compared with the trace."""
    count = 1_000_000
    session = marey.Session()
    session.start()
    blocks(marey.record_function)
    gc.collect()
    before = resident_bytes()
    for _ in range(count // COUNT):
        blocks(marey.record_function)
    grown = resident_bytes() - before
    trace = session.stop()
    held = resident_bytes() - before
    columns = COLUMN_BYTES * len(trace)
    print(
        json.dumps({"name": "py_range_memory", "value": grown / count, "unit": "bytes", "target": "<= 32"}), flush=True
    )
    print(
        json.dumps(
            {
                "name": "py_stopped_memory",
                "value": held / count,
                "unit": "bytes",
                "against": "the columns of the trace",
                "against_value": columns / count,
                "ratio": held / columns,
                "target": "<= 1.1",
            }
        ),
        flush=True,
    )


def main():
    floor = build_floor()
    make, pair = marey.record_function, (marey.begin, marey.end)
    compare("py_range_with", blocks, make, floor.Block, "with-object in C", "<= 1.25", True)
    compare("py_range_with_off", blocks, make, floor.Block, "with-object in C", "<= 1.0", False)
    compare(
        "py_range_fast",
        reused,
        marey.record_function_fast("benchmark"),
        floor.Block("benchmark"),
        "reused with-object in C",
        "<= 1.25",
        True,
    )
    compare("py_range_begin_end", pairs, pair, (floor.begin, floor.end), "functions in C", "<= 1.3", True)
    compare(
        "py_range_decorator", calls, make("benchmark")(plain), floor.decorate(plain), "decorator in C", "<= 1.3", True
    )
    memory()


if __name__ == "__main__":
    sys.exit(main())
