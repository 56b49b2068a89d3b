"""Questions of ``marey ask`` on DuckDB: quantiles, waiting, overlap; planted stragglers and regressions are found."""

import itertools
import json
import math
import random
import re
import shutil
import statistics

import pyarrow
import pytest
from lakes import make_lake, marey_command, record

import marey
from marey.sql import export, question
from marey.sql.database import of_trace  # private: a connection to a trace, as questions open it


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    path = tmp_path_factory.mktemp("capture") / "app.marey"
    record(path)
    return path


@pytest.fixture(scope="module")
def lake(tmp_path_factory, capture):
    folder = tmp_path_factory.mktemp("lake")
    export.export_run([str(capture)], str(folder), "one")
    return folder


def simulated(folder, **facts):
    make_lake.write_run(folder, make_lake.Job(**{"ranges_per_step": 60, **facts}))
    return marey.lake(folder)


def test_every_question_has_a_title_and_runs_on_a_trace_and_a_lake(lake, capture):
    listed = marey_command("ask", "--list")
    of_capture = of_trace(marey.load(capture)._filtered([], True, False))
    question.add_tables(of_capture.connection)
    for name in question.names():
        found = question.question(name)
        assert found.title.endswith(".") and found.sql.startswith(f"-- {name}: ")
        assert re.search(rf"^{name} +{re.escape(found.title)}$", listed, re.MULTILINE)
        assert set(re.findall(r"(?<![:\w]):([a-z_]\w*)", re.sub(r"--.*", "", found.sql))) == set(found.defaults)
        in_lake = marey.lake(lake).ask(name, **({"run": "one"} if "run" in found.defaults else {}))
        assert len(of_capture.sql(found.text())) == len(in_lake), name
    assert marey_command("ask", "hot", capture, "--format", "csv").count("\n") == 1 + len(marey.lake(lake).ask("hot"))


def test_hot_counts_recursion_once_and_folds_imports_as_a_report_does(tmp_path):
    importlib = "<frozen importlib._bootstrap>(1): "
    ranges = [
        ("app.py(1): <module>", 0, 1000),
        ("app.py(2): walk", 0, 400),
        ("app.py(2): walk", 100, 200),
        (importlib + "_find_and_load", 500, 300),
        (importlib + "_load_unlocked", 510, 280),
        ("part.py(1): <module>", 520, 200),
    ]
    events = [
        {"ph": "X", "cat": "python_function", "pid": 1, "tid": 1, "name": name, "ts": start, "dur": duration}
        for name, start, duration in ranges
    ]
    (tmp_path / "x.json").write_text(json.dumps(events))
    rows = json.loads(marey_command("ask", "hot", tmp_path / "x.json", "--format", "json"))
    assert {row["name"]: (row["calls"], row["self_ns"], row["total_ns"]) for row in rows} == {
        "app.py(2): walk": (2, 400_000, 400_000),
        "app.py(1): <module>": (1, 300_000, 1_000_000),
        "import part": (1, 300_000, 300_000),
    }
    export.export_run([str(tmp_path / "x.json")], str(tmp_path / "lake"), "one")
    assert marey.lake(tmp_path / "lake").ask("hot").to_pylist() == rows


@pytest.fixture(scope="module")
def python_run(tmp_path_factory):
    """A run of a plain Python program, without steps, ranks and devices."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "x.py").write_text(
        "import colorsys, threading\ndone = threading.Event()\n"
        "def slow(n): return sum(i * i for i in range(n))\ndef a(): slow(30_000)\ndef b(): slow(10)\n"
        "a(); b(); b()\nthreading.Timer(0.01, done.set).start()\ndone.wait()\n"
    )
    marey_command("run", "-q", "-o", folder / "x.marey", folder / "x.py")
    return folder / "x.marey"


def answer(name, capture, *options):
    return json.loads(marey_command("ask", name, capture, "--format", "json", *options))


def test_questions_about_plain_programs(python_run):
    callers = {row["caller"]: row["calls"] for row in answer("callers", python_run, "-p", "name=%: slow")}
    assert {name.rpartition(": ")[2]: calls for name, calls in callers.items()} == {"a": 1, "b": 2}
    assert {row["module"] for row in answer("imports", python_run)} >= {"colorsys"}
    longest = answer("longest_calls", python_run, "-p", "name=%: slow", "-p", "top=1")
    assert len(longest) == 1 and longest[0]["duration_ns"] >= longest[0]["self_ns"] > 0
    waiting = answer("waiting_functions", python_run)
    assert "Condition.wait" in {row["name"].rpartition(": ")[2] for row in waiting}
    assert not [row for row in waiting if "slow" in row["name"]]


def test_a_question_without_an_answer_says_why(python_run):
    for name in question.names():
        found = question.question(name)
        runs = ["-p", "run=none"] if "run" in found.defaults else []
        text = marey_command("ask", name, python_run, "--format", "csv", *runs)
        assert found.why_empty and text.endswith(f"\nmarey: ask: no rows: {found.why_empty}\n"), name


def test_a_question_from_a_file_and_its_text(lake, tmp_path):
    path = tmp_path / "mine.sql"
    path.write_text(
        "-- mine: Names like this.\n-- parameter name = lo%: A pattern\n"
        "select distinct name, ':name' x from ranges where name like :name"
    )
    assert marey.lake(lake).ask(str(path)).to_pylist() == [{"name": "load", "x": ":name"}]
    assert marey.lake(lake).ask(str(path), name="s'%").to_pylist() == []
    assert "like 'sa%'" in marey_command("ask", path, "--print-sql", "-p", "name=sa%")
    pytest.importorskip("sqlglot")
    for dialect in ("trino", "bigquery", "clickhouse", "postgres", "spark"):
        for name in question.names():
            assert "select" in question.translated(question.question(name).text(), dialect).lower()


def test_a_question_may_include_the_parts_of_others(lake, tmp_path):
    path = tmp_path / "mine.sql"
    path.write_text("-- parameter run = %: Runs\nwith\n-- include met\nselect count(*) as n from met")
    assert marey.lake(lake).ask(str(path)).to_pylist() == [{"n": 2}]
    path.write_text("with\n-- include mat\nselect 1")
    with pytest.raises(marey.Error, match=r"^mine includes mat, which is unknown; known: met$"):
        marey.lake(lake).ask(str(path))


def test_every_duration_is_in_its_bucket(lake):
    edges = question.bucket_edges()
    assert edges[0] == (0, 0, 1) and all(high == low for (_, _, high), (_, low, _) in itertools.pairwise(edges))
    assert all((high - low) * 32 <= low or high - low == 1 for _, low, high in edges)
    numbers = sorted({max(0, low + delta) for _, low, _ in edges for delta in (-1, 0, 1)})
    connection = marey.lake(lake).duckdb()
    connection.register(
        "numbers", pyarrow.table({"x": pyarrow.array([n for n in numbers if n < 2**62], pyarrow.int64())})
    )
    connection.register("edges", question.bucket_table())
    sql = question.question("tail").sql
    formula = re.search(r"case when duration_ns < 64.*?end(?= as bucket)", sql, re.DOTALL)[0].replace(
        "duration_ns", "x"
    )
    wrong = connection.execute(
        f"select x from (select x, {formula} as bucket from numbers) join edges using (bucket) "
        "where x < low_ns or x >= high_ns"
    ).fetchall()
    assert wrong == []


def test_quantiles_are_right_to_a_bucket(tmp_path):
    found = simulated(tmp_path / "lake", ranks=2, steps=50)
    exact = found.sql(
        "select name, quantile_disc(duration_ns, 0.5) p50, quantile_disc(duration_ns, 0.99) p99, "
        "max(duration_ns) longest "
        "from ranges where name not like 'ProfilerStep#%' group by 1"
    ).to_pylist()
    rows = {row["name"]: row for row in found.ask("tail", calls=0, top=1000).to_pylist()}
    assert len(rows) == len(exact) > 10
    for row in exact:
        mine = rows[row["name"]]
        assert mine["median_ns"] <= row["p50"] <= mine["median_ns"] * 33 / 32 + 1
        assert mine["p99_ns"] <= row["p99"] <= mine["p99_ns"] * 33 / 32 + 1
        assert mine["longest_ns"] == row["longest"]


def test_planted_stragglers_are_found_with_their_cause_and_clean_runs_are_silent(tmp_path):
    """100 seeds with a straggler, 100 without."""
    for seed in range(100):
        late, first = seed % 8, seed % 10
        job = {"ranks": 8, "steps": 20, "seed": seed}
        make_lake.write_run(
            tmp_path / "lake",
            make_lake.Job(**job, ranges_per_step=40, run=f"late-{seed:03d}", stragglers={late: (first, first + 5)}),
        )
        make_lake.write_run(tmp_path / "lake", make_lake.Job(**job, ranges_per_step=40, run=f"clean-{seed:03d}"))
    found = marey.lake(tmp_path / "lake")
    rows = found.ask("last_to_arrive", top=1000).to_pylist()
    assert [(row["run"], row["rank"]) for row in sorted(rows, key=lambda row: row["run"])] == [
        (f"late-{seed:03d}", seed % 8) for seed in range(100)
    ]
    causes = {}
    for row in found.ask("late_work", top=100000).to_pylist():
        causes.setdefault(row["run"], row)
    for seed in range(100):
        row = causes[f"late-{seed:03d}"]
        assert (row["rank"], row["name"]) == (seed % 8, make_lake.kernel_name(make_lake.STRAGGLER_OPERATOR))
    slow = found.ask("slow_steps", top=600).to_pylist()
    expected = {(f"late-{seed:03d}", step, seed % 8) for seed in range(100) for step in range(seed % 10, seed % 10 + 6)}
    assert {(row["run"], row["step"], row["slowest_rank"]) for row in slow} == expected


def test_planted_regressions_are_found_and_equal_runs_are_silent(tmp_path):
    """100 pairs of runs with a slower kernel, 100 without."""
    wrong = []
    for seed in range(100):
        folder = tmp_path / str(seed)
        operator = (3, 11, 22, 30)[seed % 4]
        job = {"ranks": 1, "steps": 10, "ranges_per_step": 500}
        for run, facts in {
            "base": {"seed": seed},
            "equal": {"seed": seed + 1000},
            "slower": {"seed": seed + 2000, "slower": {operator: 1.3}},
        }.items():
            make_lake.write_run(folder, make_lake.Job(**job, run=run, **facts))
        found = marey.lake(folder)
        slower = {row["name"] for row in found.ask("regress", base="base", new="slower").to_pylist()}
        equal = {row["name"] for row in found.ask("regress", base="base", new="equal").to_pylist()}
        if (
            make_lake.kernel_name(operator) not in slower
            or slower - {make_lake.kernel_name(operator), f"aten::op_{operator:02d}"}
            or equal
        ):
            wrong.append((seed, slower, equal))
        shutil.rmtree(folder)
    assert wrong == []


def rank_files(folder, seed, ranks=4, steps=5, collectives=3):
    """Chrome traces of ranks that compute for random times and then meet, several times in a step."""
    chance = random.Random(seed)
    events = [[] for _ in range(ranks)]

    def add(rank, name, start, duration, **values):
        fields = {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1}
        events[rank].append({**fields, "ts": start, "dur": duration, "args": values})

    now = 0
    for step in range(steps):
        begin = now
        for number in range(collectives):
            work = [chance.randrange(100, 110 if number == 0 else 2000) for _ in range(ranks)]  # few: equal starts
            for rank, time in enumerate(work):
                add(rank, "aten::mm", now, time)
                met = {"Process Group Name": "world", "Seq": step * collectives + number}
                add(rank, "gloo:all_reduce", now + time, max(work) - time + 50, **met)
            now += max(work) + 60
        for rank in range(ranks):  # without time between two steps, which `marey ranks` adds to the next one
            add(rank, f"ProfilerStep#{step}", begin, now - begin)
    for rank in range(ranks):
        info = {"backend": "gloo", "rank": rank, "world_size": ranks}
        trace = {"schemaVersion": 1, "host_name": "node0", "distributedInfo": info, "traceEvents": events[rank]}
        (folder / f"rank{rank}.json").write_text(json.dumps(trace))
    return [str(folder / f"rank{rank}.json") for rank in range(ranks)]


@pytest.mark.parametrize("seed", range(5))
def test_steps_collectives_and_who_came_last_are_those_of_marey_ranks(tmp_path, seed):
    paths = rank_files(tmp_path, seed)
    report = marey.ranks(paths)
    assert report["rank_totals"]["collectives"] == 15 and report["rank_totals"]["unmatched"] == 0
    export.export_run(paths, str(tmp_path / "lake"), "job")
    found = marey.lake(tmp_path / "lake")
    waiting = {row["rank"]: (row["collectives"], row["waiting_ns"]) for row in found.ask("waiting").to_pylist()}
    assert waiting == {rank["rank"]: (rank["collectives"], rank["waiting_ns"]) for rank in report["ranks"]}
    last = {row["rank"]: row["times_last"] for row in found.ask("last_to_arrive", permille=0).to_pylist()}
    assert last == {rank["rank"]: rank["times_last"] for rank in report["ranks"] if rank["times_last"]}
    assert {
        (row["step"], row["slowest_rank"], row["ranks"], row["duration_ns"], row["own_ns"])
        for row in found.ask("slow_steps").to_pylist()
    } == {
        (step["number"], step["slowest"], step["ranks"], step["duration_ns"], step["most_work_ns"])
        for step in report["rank_steps"]
    }


def test_waiting_and_overlap_against_a_plain_program(tmp_path):
    found = simulated(tmp_path / "lake", ranks=3, steps=12, stragglers={1: (0, 3)})
    ranges = found.sql("select rank, sequence, run_ns, duration_ns, step, device from ranges").to_pylist()
    waited = dict.fromkeys(range(3), 0)
    collectives = [row for row in ranges if row["sequence"] is not None]
    last = {}
    for row in collectives:
        last[row["sequence"]] = max(last.get(row["sequence"], 0), row["run_ns"])
    for row in collectives:
        waited[row["rank"]] += last[row["sequence"]] - row["run_ns"]
    rows = found.ask("waiting").to_pylist()
    assert {row["rank"]: row["waiting_ns"] for row in rows} == waited
    assert {row["collectives"] for row in rows} == {48}
    late = {}  # behind the median, for the rank that came last
    for sequence in last:
        starts = [(row["run_ns"], -row["rank"]) for row in collectives if row["sequence"] == sequence]
        behind = max(starts)[0] - math.floor(statistics.median(start for start, _ in starts))
        late.setdefault(-max(starts)[1], []).append(behind)
    rows = found.ask("last_to_arrive", permille=0).to_pylist()
    assert {row["rank"]: (row["late_ns"], row["latest_ns"]) for row in rows} == {
        rank: (sum(each), max(each)) for rank, each in late.items()
    }

    def covered(spans):
        total, end = 0, None
        for start, stop in sorted(spans):
            start = start if end is None else max(start, end)
            total += max(0, stop - start)
            end = stop if end is None else max(end, stop)
        return total

    for row in found.ask("overlap").to_pylist():
        device = [r for r in ranges if r["rank"] == row["rank"] and r["device"] != "cpu" and r["step"] < 10]
        spans = {
            kind: [(r["run_ns"], r["run_ns"] + r["duration_ns"]) for r in device if (r["sequence"] is not None) == kind]
            for kind in (True, False)
        }
        assert row["communication_ns"] == covered(spans[True]) and row["computation_ns"] == covered(spans[False])
        both = covered(spans[True]) + covered(spans[False]) - covered(spans[True] + spans[False])
        assert row["overlap_ns"] == both
