"""diff.py: how often marey diff is right on real runs, beside tests of calls, and what comparing 2 x 10^7 ranges costs.

A program is recorded in turns, as `marey diff --runs` does it: compared with itself (DIFF_COMPARISONS times 5+5 runs),
with a function that takes 20 % longer (10+10 runs) and 30 % longer (5+5), and with one call more. On the same runs, for
the calls of one function: a Mann-Whitney test and a percentile bootstrap of the calls of one run on each side, which is
what comparing two traces call by call does, and the t test of pyperf (`compare_to`) on the totals of the runs.
"""

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import marey

COMPARISONS = int(os.environ.get("DIFF_COMPARISONS", 200))
RANGES = int(os.environ.get("DIFF_RANGES", 10_000_000))
CALLS = 3000
ROUNDS = 7

PROGRAM = """
import sys
def part(n):
    total = 0
    for i in range(n): total += i * i
    return total
def work(n): return part(n)
def other(n): return sum(i * i for i in range(n))
def texts(n): return ",".join(str(i) for i in range(n))
def main(factor, calls):
    for _ in range(3000):
        part(100)
        other(60)
        texts(40)
        for _ in range(calls): work(int(200 * factor))
main(float(sys.argv[1]), int(sys.argv[2]))
"""

RECORD = """
import sys, marey
names = [marey.record_function_fast("name %d" % i) for i in range(100)]
for _ in range(int(sys.argv[1]) // 200):
    for outer in names:
        with outer:
            with names[0]: pass
"""


def figure(name, value, unit="", **more):
    print(json.dumps({"name": name, "value": value, "unit": unit, **more}), flush=True)


def record(folder, name, factor=1.0, calls=1):
    path = folder / f"{name}.marey"
    options = ["-q", "--force", "--no-c-calls", "-o", path]
    command = [sys.executable, "-m", "marey", "run", *options, "program.py", str(factor), str(calls)]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return path


def in_turns(folder, runs, **changed):
    """The captures of both sides, recorded old, new, new, old, and so on."""
    sides = [], []
    for i in range(runs * 2):
        side = (i + i // 2) % 2
        sides[side].append(record(folder, f"{side}-{len(sides[side])}", **(changed if side else {})))
    return sides


def call_times(path, name="part"):
    trace = marey.load(path)
    return [event.time_range.elapsed_us() for event in trace.events() if event.name.endswith(f": {name}")]


def mann_whitney(a, b):
    """Whether the test says that they differ, at 5 %."""
    ranks, place = 0.0, 0
    values = sorted([(value, 0) for value in a] + [(value, 1) for value in b])
    while place < len(values):
        end = place
        while end < len(values) and values[end][0] == values[place][0]:
            end += 1
        ranks += sum(side == 0 for _, side in values[place:end]) * (place + end + 1) / 2
        place = end
    u = ranks - len(a) * (len(a) + 1) / 2
    deviation = math.sqrt(len(a) * len(b) * (len(a) + len(b) + 1) / 12)
    return abs(u - len(a) * len(b) / 2) > 1.96 * deviation


def bootstrap(a, b, random):
    ratios = sorted(
        statistics.fmean(random.choices(b, k=len(b))) / statistics.fmean(random.choices(a, k=len(a)))
        for _ in range(200)
    )
    return not ratios[4] <= 1 <= ratios[195]


def pyperf(a, b):
    """Its is_significant(): Student's t with pooled variance at 95 %."""
    pooled = (statistics.variance(a) * (len(a) - 1) + statistics.variance(b) * (len(b) - 1)) / (len(a) + len(b) - 2)
    limits = {8: 2.306, 18: 2.101}
    t = (statistics.fmean(a) - statistics.fmean(b)) / math.sqrt(pooled * (1 / len(a) + 1 / len(b)))
    return abs(t) > limits[len(a) + len(b) - 2]


def decided(result):
    return [row["name"] for row in [result["diff"] | {"name": ""}, *result["diff_rows"]]
            if row["verdict"] in ("slower", "faster")]  # fmt: skip


def same_programs(folder):
    alarms = dict.fromkeys(("marey", "calls_mann_whitney", "calls_bootstrap", "runs_pyperf"), 0)
    source = random.Random(1)
    for _ in range(COMPARISONS):
        old, new = in_turns(folder, 5)
        alarms["marey"] += bool(decided(marey.diff(old, new, in_turns=True)))
        calls = [[call_times(path) for path in side] for side in (old, new)]
        alarms["calls_mann_whitney"] += mann_whitney(calls[0][0], calls[1][0])
        alarms["calls_bootstrap"] += bootstrap(calls[0][0], calls[1][0], source)
        alarms["runs_pyperf"] += pyperf(*([sum(run) for run in side] for side in calls))
    figure("diff_same_alarms", alarms["marey"] / COMPARISONS, target="<= 0.08")
    for name in ("calls_mann_whitney", "calls_bootstrap", "runs_pyperf"):
        figure(f"diff_same_alarms_{name}", alarms[name] / COMPARISONS)


def changed_programs(folder):
    rounds = max(COMPARISONS // 10, 1)
    for runs, factor, target in ((10, 1.2, ">= 0.8"), (5, 1.3, ">= 0.5")):
        found = 0
        for _ in range(rounds):
            result = marey.diff(*in_turns(folder, runs, factor=factor), in_turns=True)
            first = result["diff_rows"][0]
            found += first["path"][-2:] == [first["path"][-2], "program.py(3): part"] and first["verdict"] == "slower"
        figure(f"diff_found_{round(factor * 100 - 100)}_percent_{runs}_runs", found / rounds, target=target)
    counted = 0
    for _ in range(rounds):
        result = marey.diff(*in_turns(folder, 2, calls=2), in_turns=True)
        causes = [count["name"] for count in result["diff_counts"] if count["causes"]]
        counted += causes == ["program.py(7): work"]
    figure("diff_found_calls", counted / rounds, target=">= 1")


def costs(folder):
    """CPU time of comparing two traces by path, against loading both."""
    (folder / "record.py").write_text(RECORD)
    for side in ("a", "b"):
        command = [
            sys.executable,
            "-m",
            "marey",
            "run",
            "-q",
            "--no-calls",
            "--max-bytes",
            "4GB",
            "-o",
            f"{side}.marey",
        ]
        subprocess.run([*command, "record.py", str(RANGES)], cwd=folder, check=True)
    loading, comparing = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        traces = [marey.load(folder / f"{side}.marey") for side in "ab"]
        loaded = time.process_time()
        marey.diff(*traces)
        loading.append(loaded - start)
        comparing.append(time.process_time() - start)
    value, against = statistics.median(comparing), statistics.median(loading)
    figure("diff_ranges", value, "s", against="loading", against_value=against, ratio=value / against, target="<= 1.3")


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "program.py").write_text(PROGRAM)
    costs(folder)
    changed_programs(folder)
    same_programs(folder)
