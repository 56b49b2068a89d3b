"""fleet.py: SQL over one trace and over lakes of 10^7 and 10^8 ranges (FLEET_RANGES): CPU time, memory, size.

Lakes are kept in build/fleet_lakes. With FLEET_RANGES=1000000000 ten runs share their files through hard links.
FLEET_HTA=PYTHON compares with HolisticTraceAnalysis, which that interpreter must have (pip install
HolisticTraceAnalysis).
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
LAKES = SOURCE / "build" / "fleet_lakes"
ONE_TRACE = 10_000_000
RANGES = int(os.environ.get("FLEET_RANGES", "100000000"))
RANKS, STEPS, PER_STEP = 1000, 200, 500
LINKED = RANKS * STEPS * PER_STEP  # ranges of one simulated run; more are hard links
STARTS = 7

# Each child prints its CPU seconds and the most memory that it used.
MEASURED = """
import json, resource, sys, time
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
def done(started, **facts):
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": used() - started, "MiB": memory, **facts}))
"""

ONE = (
    MEASURED
    + """
import marey
trace = marey.load(sys.argv[1])
import duckdb, pyarrow.dataset, pyarrow.compute
from marey.sql.database import of_trace
for name, query in {
    "group": "select name, count(*), sum(duration_ns) from ranges group by name",
    "filter": "select count(*) from ranges where duration_ns > 5000",
    "top": "select name, start_ns, duration_ns from ranges order by duration_ns desc limit 20",
}.items():
    started = used()
    database = of_trace(trace)
    rows = database.sql(query)
    done(started, name=name, rows=len(rows))
"""
)

ASK = (
    MEASURED
    + """
from marey.sql.__main__ import _WithoutPandas
sys.meta_path.insert(0, _WithoutPandas)  # as the command does
import marey, duckdb, pyarrow
started = used()
rows = marey.lake(sys.argv[1]).ask(sys.argv[2], **json.loads(sys.argv[3]))
done(started, rows=len(rows))
"""
)

EXPORT = (
    MEASURED
    + """
import marey, pyarrow.parquet, pyarrow.compute
from marey.sql import export
from marey.sql.tables import TraceSource
trace = marey.load(sys.argv[1])
started = used()
size = export.write_capture(TraceSource(trace), sys.argv[2])
done(started, ranges=len(trace), bytes=size)
"""
)

# Communication that computation hides, in percent, for eight ranks given as Chrome traces.
OVERLAP = (
    MEASURED
    + """
import glob, marey
started = used()
ranks = marey.ranks(glob.glob(sys.argv[1] + "/*.json"))["ranks"]
done(started, overlap=[100 * rank["overlap_ns"] / max(rank["communication_ns"], 1) for rank in ranks])
"""
)
HTA = (
    MEASURED
    + """
import logging, os
from hta.trace_analysis import TraceAnalysis
logging.disable(logging.INFO)
started = used()
analysis = TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True)
rows = analysis.get_comm_comp_overlap(visualize=False)
children = resource.getrusage(resource.RUSAGE_CHILDREN)
done(
    started - children.ru_utime - children.ru_stime,
    overlap=list(rows["comp_comm_overlap_pctg"]),
    largest_child=children.ru_maxrss / 1024,
)
"""
)


def figure(name, value, unit, target, **facts):
    print(json.dumps({"name": name, "value": value, "unit": unit, "target": target, **facts}), flush=True)


def child(text, *words, python=sys.executable):
    """Run a program and return the JSON objects that it prints."""
    done = subprocess.run([python, "-c", text, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def large_trace():
    """A capture of ten million ranges of 502 names."""
    path = LAKES / "one.marey"
    if not path.exists():
        LAKES.mkdir(parents=True, exist_ok=True)
        program = (
            "import marey, sys\n"
            f"names = [marey.record_function_fast('name %d' % i) for i in range(500)]\n"
            "session = marey.Session(); session.start(max_bytes=8 << 30)\n"
            f"for _ in range({ONE_TRACE} // 1000):\n"
            "    for range in names:\n"
            "        with range:\n"
            "            with names[0]: pass\n"
            "session.stop().save(sys.argv[1])\n"
        )
        child(program, path)
    return path


def lake_of(ranges):
    """The lake with that many ranges; its bytes per range."""
    path = LAKES / f"lake{ranges}"
    if not (path / "made").exists():
        ranks = max(1, min(RANKS, ranges // (STEPS * PER_STEP)))
        words = [
            path,
            "--ranks",
            ranks,
            "--steps",
            STEPS,
            "--ranges",
            PER_STEP,
            "--links",
            max(0, ranges // LINKED - 1),
        ]
        for rank in range(0, ranks, max(1, ranks // 10)):
            words += ["--straggler", f"{rank}:{rank % 150}-{rank % 150 + 20}"]
        printed = subprocess.run(
            [sys.executable, SOURCE / "tools" / "make_lake.py", *map(str, words)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        (path / "made").write_text(printed)
    return path, float((path / "made").read_text().split(" bytes each")[0].rsplit(" ", 1)[1])


def one_trace():
    path = large_trace()
    rounds = [child(ONE, path) for _ in range(3)]
    for index, (name, target) in enumerate((("group", 0.3), ("filter", 0.1), ("top", 0.2))):
        figure(f"sql_{name}", statistics.median(each[index]["cpu"] for each in rounds), "s", f"<= {target} s")
    with tempfile.TemporaryDirectory(dir=LAKES) as folder:
        (made,) = child(EXPORT, path, folder)
    figure("parquet_export", made["cpu"] / made["ranges"] * 1e9, "ns", "<= 200 ns")
    figure("parquet_real_bytes", made["bytes"] / made["ranges"], "bytes", "")


def start_to_answer():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "small.marey")
        child(
            "import marey, sys\nsession = marey.Session(); session.start()\n"
            "with marey.record_function('x'): pass\nsession.stop().save(sys.argv[1])",
            path,
        )
        commands = {
            "sql": [sys.executable, "-m", "marey", "sql", path, "select count(*) from ranges"],
            "import": [sys.executable, "-c", "import duckdb, pyarrow"],
        }
        taken = {name: [] for name in commands}
        for _ in range(STARTS):
            for name, command in commands.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                taken[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    sql, floor = statistics.median(taken["sql"]), statistics.median(taken["import"])
    figure("sql_start", sql, "s", "<= 1.5", against="import duckdb, pyarrow", against_value=floor, ratio=sql / floor)


def against_hta():
    """Needs an interpreter with HolisticTraceAnalysis, which FLEET_HTA names."""
    folder = LAKES / "chrome"
    if not folder.exists():
        words = [folder, "--ranks", 8, "--steps", STEPS, "--ranges", PER_STEP, "--chrome"]
        subprocess.run([sys.executable, SOURCE / "tools" / "make_lake.py", *map(str, words)], check=True)
    (ours,) = child(OVERLAP, folder)
    (theirs,) = child(HTA, folder, python=os.environ["FLEET_HTA"])
    theirs["MiB"] += theirs["largest_child"]  # it reads files in processes of its own, one at least at a time
    if any(abs(a - b) > 0.01 for a, b in zip(ours["overlap"], theirs["overlap"], strict=True)):
        sys.exit(f"different answers: {ours['overlap']} and {theirs['overlap']}")
    for name, key, unit in (("time", "cpu", "s"), ("memory", "MiB", "MiB")):
        figure(
            f"overlap_{name}",
            ours[key],
            unit,
            "<= 0.1",
            against="HolisticTraceAnalysis",
            against_value=theirs[key],
            ratio=ours[key] / theirs[key],
        )


def questions(ranges):
    lake, size = lake_of(ranges)
    exponent = len(str(ranges)) - 1
    figure(f"lake_bytes_1e{exponent}", size, "bytes", "<= 10.5 bytes")
    seconds, memory = (10, 256) if ranges <= LINKED else (60, 512)
    names = ("hot", "waiting", "last_to_arrive", "slow_steps") if ranges <= LINKED else ("hot", "last_to_arrive")
    for name in names:
        started = time.time()
        (made,) = child(ASK, lake, name, "{}")
        figure(f"ask_{name}_1e{exponent}", made["cpu"], "s", f"<= {seconds} s")
        figure(f"ask_{name}_1e{exponent}_memory", made["MiB"], "MiB", f"<= {memory} MiB")
        print(f"{name}: {time.time() - started:.1f} s of wall time", file=sys.stderr)
    (made,) = child(ASK, lake, "one_step", json.dumps({"run": "run-0", "rank": 3, "step": 77}))
    figure(f"ask_one_step_1e{exponent}", made["cpu"], "s", "<= 1 s")


if __name__ == "__main__":
    start_to_answer()
    one_trace()
    if "FLEET_HTA" in os.environ:
        against_hta()
    questions(10_000_000)
    if RANGES > 10_000_000:
        questions(RANGES)
