"""SQL over one trace: every table, errors, limits, formats."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import environment

import marey
from marey import _marey  # private: table_names: the list to compare with
from marey.sql.database import of_trace  # private: a connection to a trace, as questions open it

duckdb = pytest.importorskip("duckdb")

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8) | st.sampled_from(
    ["load", "=1+1", "'-x", "a,b\n", ""]
)
VALUES = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), NAMES)
PROGRAMS = st.recursive(
    st.one_of(
        st.tuples(st.just("instant"), NAMES),
        st.tuples(st.just("counter"), NAMES, st.floats(allow_nan=False, allow_infinity=False)),
        st.tuples(st.just("memory"), st.integers(1, 2**63 - 1), st.integers(-1000, 1000).filter(bool)),
    ),
    lambda inner: st.tuples(
        st.just("range"), NAMES, st.dictionaries(NAMES.filter(bool), VALUES, max_size=3), st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


def perform(program):
    kind, *facts = program
    if kind == "range":
        name, values, inner = facts
        with marey.record_function_fast(name or "unnamed", keyword_values=values):
            for each in inner:
                perform(each)
    elif kind == "instant":
        marey.instant(facts[0] or "unnamed")
    elif kind == "counter":
        marey.counter(facts[0] or "unnamed", facts[1])
    else:
        marey.report_allocation(facts[0], facts[1])


def recorded(*programs):
    session = marey.Session()
    session.start(profile_memory=True, record_shapes=True)
    for program in programs:
        perform(program)
    return session.stop()


def in_csv(value):
    """A cell as marey export writes it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value if re.match(r"'*[=+\-@\t\r]", value) else value
    return value


def check_tables(trace):
    connection = trace.duckdb()
    for name, table in trace.tables.items():
        header, *rows = csv.reader(io.StringIO(table.to_csv(), newline=""))
        columns = ", ".join(f'"{column}"' for column in header)
        found = connection.execute(f'select {columns} from "{name}" order by row').fetchall()
        assert len(found) == len(rows), name
        for number, (values, cells) in enumerate(zip(found, rows)):
            for column, value, cell in zip(header, values, cells):
                expected = in_csv(value)
                same = float(cell) == value if isinstance(value, float) else cell == str(expected)
                assert same, (name, number, column, value, cell)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(PROGRAMS, max_size=5))
def test_every_table_has_the_cells_of_its_csv(programs):
    check_tables(recorded(*programs))


def test_an_empty_trace_has_empty_tables():
    check_tables(marey.Trace())
    assert marey.Trace().sql("select count(*) n from ranges").to_pylist() == [{"n": 0}]


def test_names_that_are_not_utf8_and_lists_are_readable(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(
        b'{"traceEvents":[{"ph":"X","name":"a\xff\xfeb","pid":1,"tid":1,"ts":1,"dur":2,'
        b'"args":{"Input Dims":[[2,3],[]],"Input type":["float",""],"list":[1,"x",null]}}]}'
    )
    trace = marey.load(path)
    check_tables(trace)
    assert trace.sql("select name from ranges").to_pylist() == [{"name": "a\ufffd\ufffdb"}]


@pytest.fixture(scope="module")
def trace():
    """Two steps with a collective each; in the second one a value."""
    session = marey.Session()
    session.start(profile_memory=True)
    for step in range(2):
        with marey.record_function(f"ProfilerStep#{step}"):
            with marey.record_function("forward"):
                with marey.record_function_fast("load", keyword_values={"bytes": 10 + step, "file": "a|b"}):
                    marey.report_allocation(4096 + step, 64)
            with marey.record_function_fast("all_reduce", keyword_values={"group": "dp", "sequence": 7 + step}):
                pass
            marey.counter("loss", 1 / (step + 1))
    return session.stop()


@pytest.fixture(scope="module")
def capture(trace, tmp_path_factory):
    path = tmp_path_factory.mktemp("capture") / "app.marey"
    trace.save(path)
    return str(path)


def marey_sql(*words, text="", code=0, **changes):
    """Run `marey sql` and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "marey", "sql", *words],
        env=environment(**changes),
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def rows(trace, query):
    return list(zip(*(column.to_pylist() for column in trace.sql(query).columns)))


# ---- tables


def test_ranges_have_their_step_group_and_sequence(trace):
    assert rows(trace, "select name, step, r.group, sequence from ranges r where name = 'all_reduce' order by row") == [
        ("all_reduce", 0, "dp", 7),
        ("all_reduce", 1, "dp", 8),
    ]
    assert rows(trace, "select distinct step from ranges where name = 'load' order by 1") == [(0,), (1,)]
    assert rows(trace, "select min(run_ns) >= 0, count(distinct run), count(rank) from ranges") == [(True, 1, 0)]


def test_analyses_are_tables(trace):
    averages = {event.key: event for event in trace.key_averages()}
    found = rows(trace, "select name, count, total_ns, self_ns from averages")
    assert len(found) == len(averages)
    for name, count, total, own in found:
        event = averages[name]
        assert (count, total, own) == (
            event.count,
            round(event.cpu_time_total * 1000),
            round(event.self_cpu_time_total * 1000),
        )
    assert rows(trace, "select number, name from steps") == [(0, "ProfilerStep#0"), (1, "ProfilerStep#1")]
    assert rows(trace, "select count(*) > 0, count(distinct step) from step_differences") == [(True, 1)]
    assert rows(trace, "select name, sum(count) from tree where name = 'load' group by 1") == [("load", 2)]
    assert rows(trace, "select sum(allocated_bytes) from memory_holders where name = 'load'") == [(128,)]
    assert rows(trace, "select count(*) from gpu_kernels union all select count(*) from gpu_gaps") == [(0,), (0,)]


def test_every_column_of_every_result_is_in_sql(trace):
    known = set(rows(trace, "select table_name, column_name from information_schema.columns"))
    for result in _marey.result_names():
        for table in _marey.make_result(_marey.Trace(), result):
            if table.name in ("", *_marey.table_names()):  # the tables of the trace tell it
                continue
            for key, _ in table.columns():
                assert (table.name, key) in known
    assert rows(trace, "select path[1], peak_bytes from memory_holders where name = 'load'") != []


def test_perfetto_names_are_views(trace):
    assert rows(
        trace,
        "select s.name, p.name from slice s join slice p on p.id = s.parent_id where s.name = 'load' order by s.ts",
    ) == [("load", "forward"), ("load", "forward")]
    assert rows(trace, "select name, dur from slice order by ts limit 1") == rows(
        trace, "select name, duration_ns from ranges order by start_ns limit 1"
    )
    assert rows(
        trace,
        "select count(*) from slice s join thread_track k on s.track_id = k.id join thread t using (utid) "
        "join process p using (upid)",
    ) == [(len(trace),)]
    assert rows(trace, "select pid from process") == [(os.getpid(),)]
    assert rows(trace, "select is_main_thread from thread where tid = " + str(os.getpid())) == [(True,)]
    assert rows(trace, "select t.name, value from counter c join counter_track t on t.id = c.track_id order by ts") == [
        ("loss", 1.0),
        ("loss", 0.5),
    ]
    assert rows(trace, "select distinct flat_key, value_type from args where string_value = 'a|b'") == [
        ("debug.file", "string")
    ]
    assert rows(
        trace,
        "select extract_arg(arg_set_id, 'bytes')::int, extract_arg(arg_set_id, 'debug.file') from slice "
        "where name = 'load' order by ts",
    ) == [(10, "a|b"), (11, "a|b")]


def test_ancestors_and_descendants_of_a_slice(trace):
    load, step = (
        rows(trace, f"select min(id) from slice where name = '{name}'")[0][0] for name in ("load", "ProfilerStep#0")
    )
    assert rows(trace, f"select name from ancestor_slice({load})") == [("ProfilerStep#0",), ("forward",)]
    assert rows(trace, f"select name from descendant_slice({step})") == [("forward",), ("load",), ("all_reduce",)]


def test_flows_are_links(tmp_path):
    path = tmp_path / "x.json"
    events = [
        {"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": start, "dur": 5}
        for name, tid, start in (("send", 1, 0), ("receive", 2, 10))
    ]
    events += [
        {"ph": "s", "id": 1, "name": "message", "cat": "c", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "f", "bp": "e", "id": 1, "name": "message", "cat": "c", "pid": 1, "tid": 2, "ts": 11},
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    assert rows(
        marey.load(path),
        "select a.name, b.name from flow join slice a on a.id = slice_out join slice b on b.id = slice_in",
    ) == [("send", "receive")]


def test_an_unfinished_slice_has_duration_minus_one():
    session = marey.Session()
    session.start()
    with marey.record_function("open"):
        trace = session.snapshot()
    session.discard()
    assert rows(trace, "select dur from slice where name = 'open'") == [(-1,)]


def test_paths_and_times_for_people(trace):
    assert rows(trace, "select distinct path(row) from ranges where name = 'load' order by 1") == [
        ("ProfilerStep#0;forward;load",),
        ("ProfilerStep#1;forward;load",),
    ]
    assert rows(trace, "select path(-1), path(null), path(1000000)") == [(None, None, None)]
    times = {"12": "12 ns", "1500": "1.500 us", "2500000": "2.500 ms", "3000000000": "3.000 s", "-1500": "-1.500 us"}
    for ns, text in {**times, "120000000000": "2.0 min", "null": None}.items():
        assert rows(trace, f"select human_time({ns})") == [(text,)]


def test_results_are_arrow_pandas_and_readable(trace):
    result = trace.sql("select name, count(*) n from ranges group by 1 order by 2 desc, 1")
    assert result.column_names == ["name", "n"] and len(result) == result.num_rows
    assert pyarrow.table(result).num_rows == len(result)
    assert list(result.df().columns) == ["name", "n"]
    assert repr(result).startswith("name ") and repr(result).endswith(f"({len(result)} rows)")


# ---- errors and limits


def test_errors_have_a_position_and_the_nearest_names(trace):
    for query, text in {
        "select\n  nam from ranges": 'line 2, column 3: unknown column "nam"; nearest names: "name"',
        "select * from rnages": "line 1, column 15: unknown table rnages: did you mean ranges",
        "select * from zzzzzz": "unknown table zzzzzz: see --tables",
        "select 1;\nselect count(* from ranges": 'line 2, column 16: syntax error at or near "from"',
        "": "the query is empty",
        "select " + "1 + " * 200 + "nam from ranges": "line 1, column 808: unknown column",
    }.items():
        with pytest.raises(marey.Error) as caught:
            trace.sql(query)
        assert text in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from glob('/etc/*')",
        "select * from read_text('/etc/passwd')",
        "copy ranges to 'x.csv'",
        "explain analyze copy ranges to 'x.csv'",
        "prepare x as copy ranges to 'x.csv'",
        "attach 'x.db'",
        "export database 'x'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "reset enable_external_access",
        "pragma enable_external_access",
        "select * from secret_variable",
    ],
)
def test_a_query_reaches_nothing_but_the_trace(trace, query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret_variable = pyarrow.table({"x": [1]})
    with pytest.raises(marey.Error):
        trace.sql(query)
    with pytest.raises(duckdb.Error):
        trace.duckdb().execute(query)
    assert list(tmp_path.iterdir()) == [] and secret_variable.num_rows == 1


def test_statements_without_rows_and_several_statements(trace):
    assert (
        trace.sql("create table names as select distinct name from ranges; select count(*) n from names").num_rows == 1
    )
    assert trace.sql("create table names as select 1 as x").num_columns in (0, 1)


def test_an_endless_query_is_stopped(trace, capture):
    endless = "select sum(a.range * b.range) from range(100000000) a, range(100000000) b"
    with pytest.raises(marey.Error, match=r"stopped after 0\.5 s"):
        trace.sql(endless, timeout=0.5)
    assert "stopped after 1 s (--timeout)" in marey_sql(capture, endless, "--timeout", "1", code=2)


def test_ctrl_c_stops_a_query(capture):
    """Its rows have no end; the first ones show that it runs."""
    words = [sys.executable, "-m", "marey", "sql", str(capture), "select range from range(1000000000000)"]
    with subprocess.Popen(
        [*words, "--format", "csv"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as program:
        assert program.stdout.readline() == b'"range"\n' and program.stdout.readline() == b"0\n"
        os.killpg(program.pid, signal.SIGINT)
        _, error = program.communicate(timeout=300)
    assert (program.returncode, error) == (130, b"marey: sql: interrupted\n")


def test_rows_are_streamed(trace):
    """A thousand million rows would not fit into memory."""
    with of_trace(trace).stream("select range, range * 2 from range(1000000000)") as reader:
        read = sum(reader.read_next_batch().num_rows for _ in range(4))
    assert read > 0


# ---- the command


def test_the_command_prints_tables_and_columns(capture):
    listed = marey_sql(capture, "--tables")
    for table in [
        *_marey.table_names(),
        "averages",
        "tree",
        "steps",
        "step_differences",
        "gpu_kernels",
        "memory_holders",
        "slice",
    ]:
        assert re.search(rf"^{table}: \w", listed, re.MULTILINE), table


def test_the_command_writes_every_format(capture, tmp_path):
    query = "select name, count(*) n, name || '\x1b' as x from ranges where name = 'load' group by all"
    assert marey_sql(capture, query) == "name  n  x\n----  -  --------\nload  2  load\\x1b\n(1 row)\n"
    assert marey_sql(capture, query, "--format", "markdown").splitlines()[2] == "| load | 2 | load\\x1b |"
    assert json.loads(marey_sql(capture, query, "--format", "json")) == [{"name": "load", "n": 2, "x": "load\x1b"}]
    for name in ("json", "csv"):
        assert marey_sql(capture, query, f"--{name}") == marey_sql(capture, query, "--format", name)
    assert list(csv.reader(io.StringIO(marey_sql(capture, query, "--format", "csv"))))[1] == ["load", "2", "load\x1b"]
    for suffix in ("csv", "json", "md", "parquet", "txt"):
        marey_sql(capture, query, "-o", str(tmp_path / f"x.{suffix}"))
    assert pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist() == [{"name": "load", "n": 2, "x": "load\x1b"}]
    assert (tmp_path / "x.md").read_text().startswith("| name |") and len(list(tmp_path.iterdir())) == 5
    assert "cannot write" in marey_sql(capture, query, "-o", str(tmp_path / "no" / "x.csv"), code=2)


def test_odd_cells_in_every_format(capture):
    query = (
        "select '=1' as f, null::int as n, 'nan'::double as d, [1, null] as l, {'a': 1} as s, 1::hugeint as h, 1 as f"
    )
    assert (
        json.loads(marey_sql(capture, query, "--format", "json"))
        == [{"f": "=1", "n": None, "d": None, "l": [1, None], "s": {"a": 1}, "h": 1.0, "f_2": 1}]
        or json.loads(marey_sql(capture, query, "--format", "json"))[0]["f_2"] == 1
    )
    assert list(csv.reader(io.StringIO(marey_sql(capture, query, "--format", "csv"))))[1][:2] == ["'=1", ""]
    for format in ("table", "markdown", "csv"):
        assert "=1" in marey_sql(capture, query, "--format", format)
    assert marey_sql(capture, "select 1 as x where false", "--format", "json") == "[]\n"
    assert marey_sql(capture, "select 1 as x where false", "--format", "csv").strip() in ("x", '"x"')


def test_queries_come_from_files_and_standard_input(capture, tmp_path):
    (tmp_path / "q.sql").write_text("-- a comment\nselect 42 as answer;\n")
    assert "42" in marey_sql(capture, "-f", str(tmp_path / "q.sql"))
    assert "43" in marey_sql(capture, "-f", "-", text="select 43 as answer")
    assert "cannot read" in marey_sql(capture, "-f", str(tmp_path / "none.sql"), code=2)
    assert "mutually exclusive" in marey_sql(capture, "select 1", "-f", "x", code=2)


def test_the_prompt_answers_until_the_input_ends(capture):
    """An error does not end it."""
    text = "select 41 as a;\nselect nam from ranges;\n.tables flow\n.what\nselect\n 42 as b"
    output = marey_sql(capture, text=text)
    assert "41" in output and "42" in output and "flow: id" in output
    assert marey_sql(capture, text=".quit\nselect 41 as a;") == ""


def test_without_duckdb_the_command_names_what_to_install(capture, tmp_path):
    for package in ("duckdb", "pyarrow"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(f"raise ModuleNotFoundError('none', name={package!r})")
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        message = marey_sql(capture, "select 1", code=2, PYTHONPATH=path)
        (tmp_path / package / "__init__.py").unlink()
        (tmp_path / package).rmdir()
        assert message == f"marey: sql: {package} is not installed: pip install duckdb pyarrow\n"


def test_a_file_that_is_not_a_trace_is_one_line(tmp_path):
    (tmp_path / "x.marey").write_text("hello")
    for path in (tmp_path / "x.marey", tmp_path / "none.marey", tmp_path):
        message = marey_sql(str(path), "select 1", code=2)
        assert message.count("\n") == 1 and message.startswith("marey: sql: ") and str(path) in message


def test_queries_run_without_numpy_except_those_that_call_path(tmp_path, capture):
    """DuckDB cannot call Python functions without it, and neither DuckDB nor pyarrow installs it."""
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('No module named numpy', name='numpy')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert "2" in marey_sql(capture, "select 1 + 1 as n", PYTHONPATH=path)
    assert "steps" in marey_sql(capture, "--tables", PYTHONPATH=path)
    assert marey_sql(capture, "select path(row) from ranges", PYTHONPATH=path, code=2).endswith(
        "path() needs NumPy: pip install numpy\n"
    )


def test_a_file_name_may_be_any_bytes(tmp_path, capture):
    name = os.fsencode(tmp_path) + b"/na\xefve"
    with open(capture, "rb") as file, open(name + b".marey", "wb") as copy:
        copy.write(file.read())
    assert "2" in marey_sql(name + b".marey", "select 1 + 1 as n")
    marey_sql(name + b".marey", "select 7 as n", "-o", name + b".csv")
    with open(name + b".csv") as file:
        assert file.read().split() == ['"n"', "7"]
    assert "No such file" in marey_sql(name + b".gone", "select 1", code=2)
    trace = marey.load(name + b".marey")
    trace.save(name + b".copy")
    assert len(marey.load([name + b".copy"])) == len(trace)


def test_an_output_is_replaced_only_on_request_and_a_device_never(tmp_path, capture):
    (tmp_path / "out.csv").write_text("precious")
    query = (capture, "select 7 as n", "-o")
    assert "already exists (use --force to replace it)" in marey_sql(*query, tmp_path / "out.csv", code=2)
    assert (tmp_path / "out.csv").read_text() == "precious"
    marey_sql(*query, tmp_path / "out.csv", "--force")
    assert (tmp_path / "out.csv").read_text().split() == ['"n"', "7"]
    (tmp_path / "null").symlink_to("/dev/null")
    marey_sql(*query, tmp_path / "null", "--force")
    assert (tmp_path / "null").is_symlink() and (tmp_path / "null").is_char_device()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["null", "out.csv"]
