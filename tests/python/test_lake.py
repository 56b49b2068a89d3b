"""Lakes: Parquet files of many runs, read back by several engines; damage, killed exports, questions."""

import importlib.util
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest
from lakes import make_lake, marey_command, record
from running import environment

import marey
from marey import _marey  # private: table_names: the list to compare with
from marey.sql import export, question
from marey.sql.lake import fault_of  # private: damaged parts, one at a time
from marey.sql.runs import encoded  # private: names of folders, without writing a lake


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    path = tmp_path_factory.mktemp("capture") / "app.marey"
    record(path)
    return path


@pytest.fixture
def lake(tmp_path, capture):
    export.export_run([str(capture)], str(tmp_path / "lake"), "one")
    return tmp_path / "lake"


def snapshot(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


# ---- what is written


def test_a_lake_has_every_row_of_the_capture(lake, capture):
    trace = marey.load(capture)
    found = marey.lake(lake)
    assert found.runs == ["one"]
    connection, original = found.duckdb(), trace.duckdb()
    for table in _marey.table_names():
        if table == "range_places":
            continue
        columns = [
            name for name in trace.tables[table].to_arrow().column_names if (table, name) != ("processes", "host")
        ]
        listed = ", ".join(f'"{name}"' for name in columns)
        query = f'select {listed} from "{table}" order by row'
        assert connection.execute(query).fetchall() == original.execute(query).fetchall(), table
    query = "select step, r.group, sequence, run_ns, rank, capture, host from ranges r order by row"
    assert connection.execute(query).fetchall() == original.execute(query).fetchall()


def test_every_row_is_in_one_of_several_row_groups(tmp_path, capture, monkeypatch):
    monkeypatch.setattr(export, "ROW_GROUP", 3)
    export.export_run([str(capture)], str(tmp_path / "lake"), "one")
    (path,) = (tmp_path / "lake" / "ranges").rglob("*.parquet")
    assert pyarrow.parquet.read_metadata(path).num_row_groups == 3
    query = "select row, rank, capture, name, start_ns, run_ns, step, r.group, sequence from ranges r order by row"
    trace = marey.load(capture)
    assert marey.lake(tmp_path / "lake").sql(query).to_pylist() == trace.sql(query).to_pylist()
    query = "select * exclude (host, run) from memory order by row"
    assert marey.lake(tmp_path / "lake").sql(query).to_pylist() == trace.sql(query).to_pylist()


def test_files_are_found_by_run_host_rank_and_process(lake):
    (path,) = (lake / "ranges").rglob("*.parquet")
    host = os.uname().nodename
    assert re.fullmatch(rf"ranges/run=one/host={re.escape(encoded(host))}/0-\d+\.parquet", str(path.relative_to(lake)))
    row = marey.lake(lake).sql("select * from _runs").to_pylist()[0]
    assert (row["run"], row["captures"], row["ranges"], row["schema_version"], row["hosts"]) == ("one", 1, 8, 1, host)
    assert row["command"] and row["duration_ns"] > 0


def test_times_are_differences_and_texts_dictionaries(tmp_path):
    job = make_lake.Job(ranks=1, steps=400, ranges_per_step=500)
    rows = make_lake.range_table(make_lake.Simulation(job), 0)
    export.write_table([rows], rows.schema, str(tmp_path / "x.parquet"), "ranges")
    with pyarrow.parquet.ParquetFile(tmp_path / "x.parquet") as file:
        assert file.metadata.num_row_groups == -(-rows.num_rows // 131072)
        for group in range(file.metadata.num_row_groups):
            columns = [file.metadata.row_group(group).column(i) for i in range(file.metadata.num_columns)]
            encodings = {column.path_in_schema: column.encodings for column in columns}
            assert {column.compression for column in columns} == {"ZSTD"}
            assert "DELTA_BINARY_PACKED" in encodings["run_ns"] and "DELTA_BINARY_PACKED" in encodings["duration_ns"]
            assert "RLE_DICTIONARY" in encodings["name"] or "PLAIN_DICTIONARY" in encodings["name"]
    assert (tmp_path / "x.parquet").stat().st_size / rows.num_rows < 10.5


def test_other_libraries_read_the_files(lake):
    (path,) = (lake / "ranges").rglob("*.parquet")
    expected = marey.lake(lake).sql("select name, duration_ns, step from ranges order by row").to_pylist()
    columns = ["name", "duration_ns", "step"]
    assert pyarrow.parquet.read_table(path, partitioning=None).select(columns).to_pylist() == expected


def test_polars_reads_a_lake_and_results(lake):
    polars = pytest.importorskip("polars")
    query = "select run, name, duration_ns, step from ranges order by row"
    found = marey.lake(lake)
    read = polars.read_parquet(lake / "ranges" / "**" / "*.parquet", hive_partitioning=True)
    columns = ["run", "name", "duration_ns", "step"]
    assert read.sort("row").select(columns).to_dicts() == found.sql(query).to_pylist()
    assert found.sql(query).pl().to_dicts() == found.sql(query).to_pylist()


def test_ranks_of_one_run_share_a_start(tmp_path):
    """In captures of different processes, run_ns compares and start_ns does not."""
    program = (
        "import marey, sys\n"
        "marey.set_node_id(int(sys.argv[1]))\n"
        "session = marey.Session(); session.start()\n"
        "with marey.record_function('work'): pass\n"
        "session.stop().save(sys.argv[2])\n"
    )
    (tmp_path / "x.py").write_text(program)
    paths = [tmp_path / f"{rank}.marey" for rank in range(2)]
    for rank, path in enumerate(paths):
        subprocess.run([sys.executable, tmp_path / "x.py", str(rank), path], check=True, env=environment())
    printed = marey_command("export", *paths, "--to", "parquet", "-o", tmp_path / "lake")
    assert "2 captures, 2 ranges" in printed
    rows = marey.lake(tmp_path / "lake").sql("select rank, run_ns, start_ns from ranges order by rank").to_pylist()
    assert [row["rank"] for row in rows] == [0, 1] and 0 < rows[0]["run_ns"] < rows[1]["run_ns"]
    starts = [marey.load(path).sql("select start_ns from ranges").to_pylist()[0]["start_ns"] for path in paths]
    assert [row["start_ns"] for row in rows] == starts


def test_the_same_captures_are_the_same_run(tmp_path, capture):
    for _ in range(2):
        printed = marey_command("export", capture, "--to", "parquet", "-o", tmp_path / "lake")
    assert re.search(r"run \d{8}T\d{6}-\S+-[0-9a-f]{6}: 1 capture, 8 ranges", printed)
    found = marey.lake(tmp_path / "lake")
    assert len(found.runs) == 1 and found.sql("select count(*) n from ranges").to_pylist() == [{"n": 8}]


def test_exporting_a_run_again_replaces_all_of_it(lake, tmp_path):
    record(tmp_path / "b.marey", names=("other",), steps=1)
    export.export_run([str(tmp_path / "b.marey")], str(lake), "one")
    assert marey.lake(lake).sql("select distinct name from ranges order by 1").to_pylist() == [
        {"name": "ProfilerStep#0"},
        {"name": "other"},
    ]
    assert [name for name in os.listdir(lake) if name.startswith("_")] and not list(lake.glob("_stage-*"))


def test_names_with_any_characters_are_ids_of_runs(tmp_path, capture):
    for run in ("a/b", "x=y z", "100%", "20261117", "..", "'quoted'", "ä*?[0]"):
        export.export_run([str(capture)], str(tmp_path / "lake"), run)
        found = marey.lake(tmp_path / "lake")
        assert run in found.runs
        escaped = run.replace("'", "''")
        assert found.sql(f"select count(*) n from ranges where run = '{escaped}'").to_pylist() == [{"n": 8}]
    assert not (tmp_path / "b").exists() and len(marey.lake(tmp_path / "lake").runs) == 7


def test_empty_tables_and_an_empty_trace(tmp_path):
    marey.Trace().save(tmp_path / "empty.marey")
    export.export_run([str(tmp_path / "empty.marey")], str(tmp_path / "lake"), "none")
    found = marey.lake(tmp_path / "lake")
    assert found.sql("select count(*) n from ranges").to_pylist() == [{"n": 0}]
    assert found.sql("select count(*) n from memory").to_pylist() == [{"n": 0}]
    for name in question.names():
        assert len(found.ask(name)) == 0, name


def test_runs_of_two_schema_versions_are_read_together(lake, capture, monkeypatch):
    written = export.write_table

    def write_later(pieces, schema, path, table):
        if table == "ranges":
            added = pyarrow.array([5] * 8)
            pieces = [piece.append_column("later_column", added) for piece in pieces]
        pieces = list(pieces)
        written(pieces, pieces[0].schema, path, table)

    monkeypatch.setattr(export, "SCHEMA_VERSION", 2)
    monkeypatch.setattr(export, "write_table", write_later)
    export.export_run([str(capture)], str(lake), "two")
    rows = (
        marey.lake(lake).sql("select run, later_column, count(*) n from ranges group by all order by run").to_pylist()
    )
    assert rows == [{"run": "one", "later_column": None, "n": 8}, {"run": "two", "later_column": 5, "n": 8}]


# ---- faults


def test_a_query_cannot_write_into_the_lake(lake):
    before = snapshot(lake)
    for query in (f"copy (select 1) to '{lake}/x.parquet'", "select * from read_csv('/etc/passwd')", "attach 'x.db'"):
        with pytest.raises(marey.Error):
            marey.lake(lake).sql(query)
    assert snapshot(lake) == before


@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "text", "flipped"])
def test_damaged_files_are_named_and_can_be_left_out(lake, damage, capture):
    hot = marey.lake(lake).ask("hot").to_pylist()
    export.export_run([str(capture)], str(lake), "two")
    (path,) = (lake / "ranges" / "run=two").rglob("*.parquet")
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "foreign":
        pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), path)
    elif damage == "flipped":
        path.write_bytes(content[:200] + bytes(byte ^ 0xFF for byte in content[200:400]) + content[400:])
    else:
        path.write_bytes(b"" if damage == "empty" else b"hello\n" * 100)
    assert fault_of(str(path), "ranges", deep=True) is not None
    query = "select * from ranges"
    message = marey_command("sql", lake, query, code=2)
    assert message.startswith("marey: sql: ") and str(path) in message and "--skip-damaged" in message
    # The end of a flipped file, which is read first, is intact: it is found when the query fails.
    lines = marey_command("sql", lake, query, "--skip-damaged", "--format", "csv").splitlines()
    assert len(lines) == 1 + 8 + 1 and lines[-1].startswith(f"marey: left out: {path}"), lines
    found = marey.lake(lake, skip_damaged=True)
    assert {row["run"] for row in found.sql(query).to_pylist()} == {"one"}
    assert found.ask("hot").to_pylist() == hot


def test_an_error_in_a_query_is_not_taken_for_damage(lake):
    assert 'unknown column "nam"' in marey_command("sql", lake, "select nam from ranges", code=2)


def test_a_folder_that_is_not_a_lake_is_one_line(tmp_path):
    assert marey_command("ask", "hot", tmp_path, code=2).startswith(f"marey: ask: {tmp_path} is not a lake")


def test_a_run_without_its_row_is_not_read(lake, capture):
    """As after an export that was killed while it moved files."""
    shutil.copytree(lake / "ranges" / "run=one", lake / "ranges" / "run=half")
    assert marey.lake(lake).sql("select distinct run from ranges").to_pylist() == [{"run": "one"}]


# Forks a process for each line "FUNCTION COUNT", which is killed when it calls os.FUNCTION for the COUNTth time.
KILLED = """
import os, signal, sys
from marey.sql import export
export.require("pyarrow.parquet"), export.require("pyarrow.compute")
for line in sys.stdin:
    point, count = line.split()
    child = os.fork()
    if child == 0:
        original, left = getattr(os, point), [int(count)]
        def dying(*words, **options):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*words, **options)
        setattr(os, point, dying)
        export.export_run([sys.argv[1]], sys.argv[2], "one")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.parametrize(("point", "every"), [("rename", 1), ("makedirs", 7), ("unlink", 1)])
def test_a_killed_export_leaves_the_old_run_or_none_or_the_new_one(lake, tmp_path, point, every, capture):
    """No mixture is ever visible, and the next export repairs the rest."""
    record(tmp_path / "new.marey", names=("new",), steps=1)
    before = snapshot(lake)
    outcomes = set()
    words = [sys.executable, "-c", KILLED, str(tmp_path / "new.marey"), str(lake)]
    with subprocess.Popen(
        words, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        for count in itertools.count(step=every):
            shutil.rmtree(lake)
            for name, content in before.items():
                (lake / name).parent.mkdir(parents=True, exist_ok=True)
                (lake / name).write_bytes(content)
            print(point, count, file=program.stdin, flush=True)
            status = int(program.stdout.readline())
            found = marey.lake(lake).database("ranges threads")
            names = {row["name"] for row in found.sql("select distinct name from ranges").to_pylist()}
            threads = found.sql("select count(*) n from threads").to_pylist()[0]["n"]
            assert names in (set(), {"new", "ProfilerStep#0"}, {"load", "save", "ProfilerStep#0", "ProfilerStep#1"})
            assert (threads > 0) == bool(names)
            outcomes.add(len(names))
            export.export_run([str(capture)], str(lake), "another")
            repaired = marey.lake(lake).database("ranges")
            assert repaired.sql("select count(distinct run) n from ranges").to_pylist() == [{"n": 2}]
            assert not list(lake.glob("_stage-*"))
            if status == 0:
                break
            assert status == -signal.SIGKILL
        program.stdin.close()
    assert count > 0 and 2 in outcomes
    assert point != "rename" or {0, 2, 4} == outcomes


def test_the_same_run_exported_twice_at_once_is_whole(tmp_path, capture):
    words = [sys.executable, "-m", "marey", "export", str(capture), "--to", "parquet", "-o", str(tmp_path / "lake")]
    programs = [subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE) for _ in range(3)]
    assert [(program.communicate(timeout=120), program.returncode)[1] for program in programs] == [0, 0, 0]
    found = marey.lake(tmp_path / "lake")
    assert len(found.runs) == 1 and found.sql("select count(*) n from ranges").to_pylist() == [{"n": 8}]
    assert not list((tmp_path / "lake").glob("_stage-*"))


def test_a_full_disk_is_one_line_and_leaves_the_lake(lake, tmp_path, capture):
    """A limit on the size of files stands for the disk."""
    import resource

    before = snapshot(lake)
    done = subprocess.run(
        [sys.executable, "-m", "marey", "export", str(capture), "--to", "parquet", "-o", str(lake), "--run", "full"],
        env=environment(),
        capture_output=True,
        text=True,
        preexec_fn=lambda: (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        ),
    )
    assert done.returncode == 2 and re.fullmatch(r"marey: export: cannot write .*\n", done.stderr), done.stderr
    assert snapshot(lake) == before and not list(lake.glob("_stage-*"))


def test_wrong_words_are_one_line(tmp_path, capture):
    for words, text in {
        ("export", capture, "--to", "parquet"): "name the lake's folder with -o",
        ("export", capture, "--to", "parquet", "-o", tmp_path / "l", "--table", "threads"): "all processes, tables",
        ("export", tmp_path / "none.marey", "--to", "parquet", "-o", tmp_path / "l"): "none.marey",
        ("ask",): "no question",
        ("ask", "hot"): "no capture or lake",
        ("ask", "hto", capture): "did you mean hot?",
        ("ask", "hot", capture, "-p", "tpo=1"): "has no parameter tpo; known: run, top",
        ("ask", "hot", capture, "-p", "top=x"): "expected an integer",
        ("ask", "hot", capture, "-p", "top"): "expected NAME=VALUE",
        ("ask", "hot", capture, "--remote", "sc://x"): "--remote needs --engine spark",
        ("ask", "hot", capture, "--engine", "spark"): "spark reads lakes",
        ("ask", "hot", "--print-sql=klingon"): "cannot translate to klingon"
        if importlib.util.find_spec("sqlglot")
        else "sqlglot is not installed",
        ("ask", tmp_path / "none.sql", capture): "cannot read",
    }.items():
        message = marey_command(*words, code=2)
        assert text in message and message.count("\n") == 1, message


# ---- joining small runs


def rows_of(lake):
    """Return the rows of every table, in an order of their own."""
    connection = marey.lake(lake).duckdb()
    found = {}
    for table in [*(name for name in _marey.table_names() if name != "range_places"), "_runs"]:
        names = [name for name, *_ in connection.execute(f'select * from "{table}" limit 0').description]
        listed = ", ".join(f'"{name}"' for name in sorted(names))
        found[table] = (sorted(names), connection.execute(f'select {listed} from "{table}" order by all').fetchall())
    return found


@pytest.fixture
def small_runs(tmp_path, capture):
    for number in range(5):
        export.export_run([str(capture)], str(tmp_path / "lake"), f"run={number}/a b")
    return tmp_path / "lake"


def parquet_files(lake):
    return list(lake.rglob("*.parquet"))


def test_compacting_a_lake_leaves_one_file_per_table_and_day(small_runs, capture):
    before, files = rows_of(small_runs), len(parquet_files(small_runs))
    said = marey_command("compact", small_runs)
    tables = {path.relative_to(small_runs).parts[0] for path in parquet_files(small_runs)}
    assert len(parquet_files(small_runs)) == len(tables) == files // 5
    assert said == f"{small_runs}: joined 5 runs of 1 day: {files} files became {len(tables)}\n"
    assert rows_of(small_runs) == before
    assert marey.lake(small_runs).runs == [f"run={number}/a b" for number in range(5)]
    assert re.search(r"^load +10 ", marey_command("ask", "hot", small_runs), re.M)
    # Again, with a run more.
    assert "nothing to join" in marey_command("compact", small_runs)
    export.export_run([str(capture)], str(small_runs), "later")
    before = rows_of(small_runs)
    marey_command("compact", small_runs)
    assert rows_of(small_runs) == before and len(parquet_files(small_runs)) == len(tables)
    assert "no -o" in marey_command("compact", small_runs, "-o", "x", code=2)


def test_a_joined_run_can_be_exported_again(small_runs, tmp_path):
    marey_command("compact", small_runs)
    record(tmp_path / "new.marey", names=("new",), steps=1)
    export.export_run([str(tmp_path / "new.marey")], str(small_runs), "run=2/a b")
    for _ in range(2):
        found = marey.lake(small_runs).sql("select run, count(*) n from ranges group by run order by run").to_pylist()
        assert [row["n"] for row in found] == [8, 8, 2, 8, 8]
        assert marey.lake(small_runs).sql("select count(*) n from _runs").to_pylist() == [{"n": 5}]
        marey_command("compact", small_runs)


def test_large_runs_keep_their_files(small_runs, monkeypatch):
    monkeypatch.setattr(export, "SMALL_RUN", 8)
    files = len(parquet_files(small_runs))
    assert "nothing to join" in export.compact_lake(str(small_runs))[0]
    assert len(parquet_files(small_runs)) == files


@pytest.mark.parametrize(("point", "every"), [("rename", 2), ("unlink", 3), ("makedirs", 9)])
def test_a_killed_compaction_loses_no_run(small_runs, capture, point, every):
    """No run is visible twice, and the next export repairs the rest."""
    before, files = rows_of(small_runs), snapshot(small_runs)
    code = KILLED.replace('export.export_run([sys.argv[1]], sys.argv[2], "one")', "export.compact_lake(sys.argv[1])")
    words = [sys.executable, "-c", code, str(small_runs)]
    with subprocess.Popen(
        words, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        for count in itertools.count(step=every):
            shutil.rmtree(small_runs)
            for name, content in files.items():
                (small_runs / name).parent.mkdir(parents=True, exist_ok=True)
                (small_runs / name).write_bytes(content)
            print(point, count, file=program.stdin, flush=True)
            status = int(program.stdout.readline())
            runs = marey.lake(small_runs).sql("select run from _runs order by run").to_pylist()
            assert len(runs) == len({row["run"] for row in runs}) and len(runs) in range(6)
            export.export_run([str(capture)], str(small_runs), "run=0/a b")  # as it was
            assert rows_of(small_runs) == before
            assert not list(small_runs.glob("_stage-*"))
            if status == 0:
                break
            assert status == -signal.SIGKILL
        program.stdin.close()
    assert count > 0
