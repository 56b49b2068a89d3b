"""merging.py: eight ranks as one trace: marey merge, VizTracer --combine, and HolisticTraceAnalysis loading them;
and many large captures loaded as one trace and one by one.

All read the same ranges: Marey the captures, the others the Chrome traces that Marey exports from them. MERGING_TOOLS
names an interpreter with both tools (pip install viztracer HolisticTraceAnalysis); without it, only Marey is measured.
The figures are CPU seconds and the largest resident size of the whole command, with its child processes.

MERGING_CAPTURES (30) captures of 10^6 ranges are loaded into one process, and its CPU and elapsed times are the lowest
of several rounds, each after another process has used as much memory: otherwise a virtual machine whose host has to
find that memory first measures this.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RANKS = 8
RANGES = int(os.environ.get("MERGING_RANGES", 100_000))  # of each rank
ROUNDS = 7
CAPTURES = int(os.environ.get("MERGING_CAPTURES", 30))
RANGES_OF_CAPTURE = 1_000_000
ROW_BYTES = 38  # of the range columns

RECORD = """
import sys, marey
names = [marey.record_function_fast("name %d" % i) for i in range(100)]
for _ in range(int(sys.argv[1]) // 200):
    for outer in names:
        with outer:
            with names[0]: pass
"""

# Runs a command and prints its CPU seconds and its largest process, in MiB. A command that starts processes of its own
# prints the second itself.
MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode != 0: sys.exit(done.stderr)
last = done.stdout.splitlines()[-1] if done.stdout else ""
memory = float(last[4:]) if last.startswith("MiB ") else used.ru_maxrss / 1024
print(json.dumps([used.ru_utime + used.ru_stime, memory]))
"""

# It reads files in processes of its own, one at least at a time.
HTA = """
import logging, resource, sys
from hta.trace_analysis import TraceAnalysis
logging.disable(logging.WARNING)
traces = TraceAnalysis(trace_dir=sys.argv[1]).t.get_all_traces()
assert len(traces) == 8 and all(len(rows) > 1000 for rows in traces.values())
kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
print("MiB", sum(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024)
"""


# Prints the CPU and elapsed seconds of loading files, and how much larger the process was then, in MiB.
LOAD = """
import json, resource, sys, time, marey
def now(): return time.process_time(), time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = now()
for files in [sys.argv[2:]] if sys.argv[1] == "merged" else [[each] for each in sys.argv[2:]]: marey.load(files)
print(json.dumps([b - a for a, b in zip(before, now())]))
"""


def measured(folder, *command):
    words = [sys.executable, "-c", MEASURE, *map(str, command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def record(folder):
    """Write app.rankN.marey and chrome/rankN.json for each rank."""
    marey = [sys.executable, "-m", "marey"]
    (folder / "chrome").mkdir()
    for rank in range(RANKS):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS)}
        words = [*marey, "run", "-q", "--no-calls", "-o", "app.marey", "-c", RECORD, str(RANGES)]
        subprocess.run(words, cwd=folder, env=environment, check=True)
        path = folder / "chrome" / f"rank{rank}.json"
        words = [*marey, "export", "--to", "chrome", "-o", str(path), f"app.rank{rank}.marey"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        trace = json.loads(path.read_text())
        path.write_text(json.dumps({**trace, "distributedInfo": {"rank": rank, "world_size": RANKS}}))


def figures(name, ours, theirs=None, against=None):
    for i, (kind, unit) in enumerate((("time", "s"), ("memory", "MiB"))):
        value = statistics.median(each[i] for each in ours)
        figure = {"name": f"{name}_{kind}", "value": value, "unit": unit, "target": ""}
        if theirs:
            other = statistics.median(each[i] for each in theirs)
            figure |= {"against": against, "against_value": other, "ratio": value / other, "target": "<= 0.2"}
        print(json.dumps(figure), flush=True)


def large_captures(folder):
    """Load captures of one run as one trace, and one by one."""
    for i in range(CAPTURES):
        environment = {**os.environ, "RANK": str(i), "WORLD_SIZE": str(CAPTURES)}
        words = [sys.executable, "-m", "marey", "run", "-q", "--no-calls", "-o", "large.marey", "-c", RECORD]
        subprocess.run([*words, str(RANGES_OF_CAPTURE)], cwd=folder, env=environment, check=True)
    files = sorted(str(each) for each in folder.glob("large.rank*.marey"))
    taken = {"alone": [], "merged": []}
    columns = CAPTURES * RANGES_OF_CAPTURE * ROW_BYTES
    for _ in range(ROUNDS):
        for way, rounds in taken.items():
            subprocess.run([sys.executable, "-c", f"bytearray(b'1') * {columns * 5 // 4}"], check=True)
            words = [sys.executable, "-c", LOAD, way, *files]
            rounds.append(json.loads(subprocess.run(words, capture_output=True, check=True).stdout))
    for i, kind in enumerate(("cpu", "elapsed")):
        value, other = (min(each[i] for each in taken[way]) for way in ("merged", "alone"))
        figure = {"name": f"merge_{CAPTURES}_captures_{kind}", "value": value, "unit": "s", "target": "<= 1.5"}
        against = {"against": "loading them one by one", "against_value": other, "ratio": value / other}
        print(json.dumps(figure | against), flush=True)
    value, columns = max(each[2] for each in taken["merged"]), columns / 2**20
    figure = {"name": f"merge_{CAPTURES}_captures_memory", "value": value, "unit": "MiB", "target": "<= 1.2"}
    against = {"against": "the merged columns", "against_value": columns, "ratio": value / columns}
    print(json.dumps(figure | against), flush=True)


def main():
    tools = os.environ.get("MERGING_TOOLS")
    with tempfile.TemporaryDirectory() as name:
        large_captures(Path(name))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(folder)
        captures = sorted(each.name for each in folder.glob("app.rank*.marey"))
        traces = [f"chrome/rank{rank}.json" for rank in range(RANKS)]
        merge = [sys.executable, "-m", "marey", "merge", "--force", "-o", "all.marey", *captures]
        ways = {"marey": merge}
        if tools:
            viztracer = Path(tools).with_name("viztracer")
            ways["viztracer"] = [viztracer, "--combine", *traces, "-o", "combined.json"]
            ways["hta"] = [tools, "-c", HTA, "chrome"]
        taken = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, command in ways.items():
                taken[way].append(measured(folder, *command))
        if not tools:
            figures("merge_8_ranks", taken["marey"])
            return
        figures("merge_8_ranks_viztracer", taken["marey"], taken["viztracer"], "VizTracer --combine")
        figures("merge_8_ranks_hta", taken["marey"], taken["hta"], "HolisticTraceAnalysis, loading")


if __name__ == "__main__":
    main()
