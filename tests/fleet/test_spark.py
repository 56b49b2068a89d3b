"""The questions on real Spark in local mode: the same text, the same rows as on DuckDB (`make test-fleet`)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import marey
from marey.sql import engines, export, question

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
import make_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Two simulated runs, and a real one with allocations and odd names."""
    folder = tmp_path_factory.mktemp("lake") / "lake"
    job = {"ranks": 4, "steps": 12, "ranges_per_step": 60}
    make_lake.write_run(folder, make_lake.Job(**job, run="run-0", stragglers={2: (3, 6)}))
    make_lake.write_run(folder, make_lake.Job(**job, run="run-1", seed=1, slower={7: 2.0}))
    session = marey.Session()
    session.start(profile_memory=True)
    for name in ("load", "é'\"%_", "ProfilerStep#1", "import json", "threading.py(320): Condition.wait"):
        with marey.record_function(name):
            marey.report_allocation(4096, 64, 64, 128)
    session.stop().save(folder.parent / "app.marey")
    export.export_run([str(folder.parent / "app.marey")], str(folder), "20261117")
    return marey.lake(folder)


@pytest.fixture(scope="module")
def spark():
    session = engines.spark_session()
    yield session
    session.stop()


def plain(rows):
    return [tuple(row.values()) for row in rows.to_pylist()]


@pytest.mark.parametrize("name", question.names())
def test_a_question_has_equal_rows_on_spark(name, lake, spark):
    """Unchanged text, in the same order."""
    parameters = {"permille": 0} if name == "last_to_arrive" else {"calls": 5} if name == "tail" else {}
    parameters |= {"base": "run-0", "new": "run-1"} if name == "regress" else {}
    expected = lake.ask(name, **parameters)
    assert len(expected) > 0
    found = lake.ask(name, engine="spark", **parameters)
    assert found.column_names == expected.column_names
    assert plain(found) == plain(expected)


def test_spark_reads_every_table_as_duckdb_does(lake, spark):
    engines.add_views(spark, lake)
    for table in ("ranges", "memory", "processes", "strings", "_runs", "counters", "metadata"):
        columns = ", ".join(sorted(f"`{name}`" for name in lake.sql(f'select * from "{table}" limit 0').column_names))
        count = spark.sql(f"select {columns} from {table}").count()
        assert count == lake.sql(f'select count(*) n from "{table}"').to_pylist()[0]["n"], table
    query = (
        "select run, host, capture, name, start_ns, run_ns, duration_ns from ranges order by run, capture, row limit 50"
    )
    assert plain(lake.sql(query)) == [tuple(row) for row in spark.sql(query).collect()]


def test_ibis_has_equal_rows_on_both_engines(lake, spark):
    answers = []
    for backend in ("duckdb", "pyspark"):
        ranges = lake.ibis(backend).table("ranges")
        met = ranges.filter(ranges.sequence.notnull())
        totals = met.group_by(["run", "rank"]).aggregate(total=met.duration_ns.sum(), calls=met.count())
        answer = totals.order_by(["run", "rank"])
        answers.append(
            [(row["run"], row["rank"], row["total"], row["calls"]) for row in answer.to_pyarrow().to_pylist()]
        )
    assert answers[0] == answers[1] and len(answers[0]) == 8


def test_faults_are_one_line(lake, tmp_path, spark):
    with pytest.raises(marey.Error, match="invalid address 'x'"):
        engines.spark_session("x")
    with pytest.raises(marey.Error, match="expected duckdb or spark"):
        lake.ask("hot", engine="presto")
    with pytest.raises(marey.Error, match="expected duckdb or pyspark"):
        lake.ibis("presto")
    (tmp_path / "wrong.sql").write_text("select nam from ranges")
    with pytest.raises(marey.Error, match=r"Spark: .*nam") as caught:
        lake.ask(str(tmp_path / "wrong.sql"), engine="spark")
    assert "\n" not in str(caught.value)


def test_damaged_pages_are_named_and_can_be_left_out(tmp_path, spark):
    """The end of the file, from which Spark takes its schema, is intact."""
    job = {"ranks": 1, "steps": 3, "ranges_per_step": 60}
    make_lake.write_run(tmp_path, make_lake.Job(**job, run="good"))
    expected = plain(marey.lake(tmp_path).ask("hot"))
    make_lake.write_run(tmp_path, make_lake.Job(**job, run="bad"))
    (path,) = (tmp_path / "ranges" / "run=bad").rglob("*.parquet")
    content = path.read_bytes()
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:4] + bytes(byte ^ 0xFF for byte in content[4:end]) + content[end:])
    with pytest.raises(marey.Error, match=r"run=bad.* is damaged: .*--skip-damaged"):
        marey.lake(tmp_path).ask("hot", engine="spark")
    assert plain(marey.lake(tmp_path, skip_damaged=True).ask("hot", engine="spark")) == expected


def command(lake, *words, **changes):
    done = subprocess.run(
        [sys.executable, "-m", "marey", "ask", "hot", lake.path, "--engine", "spark", *words],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_runs_a_question_on_spark(lake):
    code, output, error = command(lake, "-p", "top=2", "--format", "csv")
    assert code == 0, error
    assert len(output.splitlines()) == 3


def test_without_java_or_spark_the_command_names_what_to_install(lake, tmp_path):
    code, _, error = command(lake, PATH=str(tmp_path), JAVA_HOME="")
    assert (code, error) == (
        2,
        "marey: ask: Spark needs a Java runtime, 17 or later: apt-get install default-jre-headless\n",
    )
    for text, message in {
        "raise ModuleNotFoundError('none', name='pyspark')": 'pyspark is not installed: pip install "pyspark[connect]"',
        "__version__ = '3.5.1'": 'pyspark 3.5.1 is too old: pip install --upgrade "pyspark[connect]" (4.0 or later)',
    }.items():
        (tmp_path / "pyspark.py").write_text(text)
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        assert command(lake, PYTHONPATH=path)[::2] == (2, f"marey: ask: {message}\n")


def test_a_spark_connect_server_gives_equal_rows(lake, tmp_path):
    """A real server, on the loopback interface."""
    import socket

    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    words = ["bash", str(home / "sbin" / "start-connect-server.sh")]
    for key, value in settings.items():
        words += ["--conf", f"{key}={value}"]
    variables = {"SPARK_HOME": str(home), "SPARK_LOG_DIR": str(tmp_path), "SPARK_PID_DIR": str(tmp_path)}
    subprocess.run(words, env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL)  # goes on as a daemon
    (pid_file,) = tmp_path.glob("*.pid")
    try:
        for _ in range(600):  # until the server listens
            code, output, error = command(lake, "--remote", f"sc://127.0.0.1:{port}", "-p", "top=3", "--format", "csv")
            if "onnect" not in error or code == 0:
                break
        assert code == 0, error
    finally:
        os.kill(int(pid_file.read_text()), 15)
    assert output.splitlines()[1:] == _csv_rows(lake.ask("hot", top=3))


def _csv_rows(result):
    return [",".join(f'"{cell}"' if isinstance(cell, str) else str(cell) for cell in row) for row in plain(result)]
