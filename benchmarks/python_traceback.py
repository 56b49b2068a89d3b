"""python_traceback.py: cost of capturing tracebacks and of symbolizing native addresses.

Only C++ can symbolize addresses without a traceback; the extension that the tests build offers that to Python. Without
pytest, nanobind, pybind11 or a compiler, that figure is left out.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import marey

TESTS = Path(__file__).resolve().parent.parent / "tests" / "python"

ROUNDS = 9
CAPTURES = 20_000
ADDRESSES = 10_000


def show(name, value, unit, against, against_value, target=None, ratio=None):
    print(
        json.dumps(
            {
                "name": name,
                "value": value,
                "unit": unit,
                "against": against,
                "against_value": against_value,
                "ratio": ratio,
                "target": target,
            }
        )
    )


def at_depth(depth, function):
    return function() if depth <= 1 else at_depth(depth - 1, function)


def seconds_each(extract, **options):
    """Seconds per capture, including its destruction. The loop is the innermost frame."""
    begin = time.perf_counter()
    for _ in range(CAPTURES):
        extract(**options)
    return (time.perf_counter() - begin) / CAPTURES


def captures():
    extract = marey.CapturedTraceback.extract
    here = len(extract())
    python, native, standard = [], [], []

    def measure():
        python.append(seconds_each(extract))
        native.append(seconds_each(extract, cpp=True))
        begin = time.perf_counter()
        for _ in range(200):
            traceback.extract_stack()
        standard.append((time.perf_counter() - begin) / 200)

    for _ in range(ROUNDS):
        at_depth(10 - here - 2, measure)  # measure and seconds_each are frames too
    each = statistics.median(python)
    standard_each = statistics.median(standard)
    show("traceback_captures", 1 / each, "/s", "traceback.extract_stack", 1 / standard_each, ">= 500000 /s")
    show("traceback_capture", each * 1e9, "ns", "traceback.extract_stack", standard_each * 1e9)
    show("traceback_capture_native", statistics.median(native) * 1e9, "ns", "Python frames alone", each * 1e9)


def ranges():
    """Compare a range with a stack of ten Python frames and a range without a stack."""
    here = len(marey.CapturedTraceback.extract())

    def seconds(**options):
        begin = time.perf_counter()
        for _ in range(CAPTURES):
            with marey.record_function("range", **options):
                pass
        return (time.perf_counter() - begin) / CAPTURES

    carried, plain = [], []

    def measure():
        with marey.profile():
            plain.append(seconds())
            carried.append(seconds(stack=True))

    for _ in range(ROUNDS):
        at_depth(10 - here - 2, measure)
    show(
        "range_with_stack",
        statistics.median(carried) * 1e9,
        "ns",
        "a range without",
        statistics.median(plain) * 1e9,
    )


def large_binary():
    """(path, first address, size) of the largest code mapping in this process, usually the interpreter's."""
    largest = ("", 0, 0)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            words = line.split()
            if "x" in words[1] and len(words) > 5 and words[5].startswith("/"):
                first, last = (int(word, 16) for word in words[0].split("-"))
                if last - first > largest[2]:
                    largest = (words[5], first, last - first)
    return largest


CHILD = """
import sys, time
sys.path[:0] = {paths!r}
import python_traceback, traces_nanobind
first = python_traceback.large_binary()[1]
addresses = [first + i * {size} // {count} + 1 for i in range({count})]
begin = time.perf_counter()
frames = traces_nanobind.symbolize_addresses(addresses)
took = time.perf_counter() - begin
begin = time.perf_counter()
traces_nanobind.symbolize_addresses(addresses)
print(took, time.perf_counter() - begin, sum(f[0]["line"] > 0 for f in frames), sum(len(f) for f in frames))
"""


def names(extensions):
    """Each run uses a new process, which has not read any symbols yet."""
    path, _, size = large_binary()
    paths = [str(Path(__file__).parent), extensions]
    program = CHILD.format(paths=paths, size=size, count=ADDRESSES)
    cold, warm = [], []
    for _ in range(7):
        out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        words = out.split()
        cold.append(float(words[0]))
        warm.append(float(words[1]))
    print(f"{path}: {words[2]} of {ADDRESSES} addresses have lines, {words[3]} frames", file=sys.stderr)
    show("traceback_symbolize", statistics.median(cold), "s", "known already", statistics.median(warm), "<= 2 s")


def build_and_measure_names():
    sys.path.append(str(TESTS))
    with tempfile.TemporaryDirectory() as folder:
        try:
            import nanobind  # noqa: F401
            import pybind11  # noqa: F401
            from building import build_extensions

            build_extensions(TESTS / "traceback_extension", folder)
        except (ImportError, AssertionError) as error:
            print(f"symbolizing is not measured: {error}", file=sys.stderr)
            return
        names(folder)


if __name__ == "__main__":
    captures()
    ranges()
    build_and_measure_names()
