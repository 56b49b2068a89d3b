"""marey.Trace: tables for other libraries, files, and its description."""

import json

import pytest

import marey


@pytest.fixture
def trace():
    with marey.profile() as prof:
        with marey.record_function("outer"):
            for _ in range(3):
                with marey.record_function("inner"):
                    pass
        marey.instant("mark")
        marey.counter("load", 0.5)
    return prof.trace


def test_a_saved_trace_is_read_back_unchanged(trace, tmp_path):
    trace.save(tmp_path / "trace.marey")
    loaded = marey.load(tmp_path / "trace.marey")
    assert len(loaded) == len(trace) == 4
    for name in trace.tables:
        assert loaded.tables[name].to_csv() == trace.tables[name].to_csv(), name


@pytest.mark.parametrize("file", ["trace.json", "trace.json.gz", "trace.pftrace"])
def test_exported_traces_can_be_loaded(trace, tmp_path, file):
    trace.export(tmp_path / file)
    loaded = marey.load(tmp_path / file)
    assert sorted(event.name for event in loaded.events()) == ["inner", "inner", "inner", "outer"]


def test_errors_name_the_invalid_file(trace, tmp_path):
    (tmp_path / "text").write_text("no trace")
    with pytest.raises(marey.Error, match="text"):
        marey.load(tmp_path / "text")
    with pytest.raises(marey.Error, match="No such file"):
        marey.load(tmp_path / "missing.json")
    with pytest.raises(marey.Error, match="unknown|format"):
        trace.export(tmp_path / "x", format="nonsense")
    with pytest.raises(TypeError):
        marey.load(3)


def test_tables_go_to_arrow_without_a_copy(trace):
    pyarrow = pytest.importorskip("pyarrow")
    table = trace.to_arrow()
    assert isinstance(table, pyarrow.Table)
    assert table.column("name").to_pylist() == ["outer", "inner", "inner", "inner"]
    assert pyarrow.RecordBatchReader.from_stream(trace).read_all().equals(table)
    assert pyarrow.schema(trace.tables["ranges"]) == table.schema
    for name in trace.tables:
        assert trace.to_arrow(name).num_columns > 0
    with pytest.raises(marey.Error, match="unknown table 'nothing'; known tables: ranges"):
        trace.to_arrow("nothing")


def test_arrow_tables_outlive_their_trace():
    pytest.importorskip("pyarrow")
    with marey.profile() as prof:
        with marey.record_function("work"):
            pass
    table = prof.trace.to_arrow()
    del prof
    assert table.column("name").to_pylist() == ["work"]


def test_tables_go_to_pandas(trace):
    pytest.importorskip("pandas")
    frame = trace.to_pandas()
    assert list(frame["name"]) == ["outer", "inner", "inner", "inner"]


def test_texts_that_look_like_formulas_reach_pandas_unchanged_without_pyarrow(monkeypatch):
    pytest.importorskip("pandas")
    names = ["=1+1", "'=1", "-x", "'quoted'"]
    with marey.profile() as prof:
        for name in names:
            with marey.record_function(name):
                pass
    table = prof.trace.tables["ranges"]

    def no_pyarrow(_):
        raise marey.Error("pyarrow is not installed")

    monkeypatch.setattr(type(table), "to_arrow", no_pyarrow)
    assert list(table.to_pandas()["name"]) == names
    assert "'=1+1" in table.to_csv()


def test_a_missing_library_is_named(trace, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(marey.Error, match="pyarrow, which is not installed"):
        trace.to_arrow()
    with pytest.raises(marey.Error, match="pandas, which is not installed"):
        trace.to_pandas()


def test_the_repr_describes_the_trace(trace):
    assert "4 ranges in " in repr(trace)
    page = trace._repr_html_()
    assert page.startswith("<p>4 ranges in ") and "inner" in page


def test_info_describes_the_trace(trace):
    info = trace.info()
    assert info["processes"] and info["threads"]
    assert trace.window_ns == trace.end_ns - trace.start_ns > 0
    assert trace.problems == []
    assert trace.with_metadata("a", [1, None]).metadata["a"] == [1, None]
    assert "a" not in trace.metadata


def test_traces_of_two_cycles_can_be_joined():
    parts = []
    for name in ("first", "second"):
        with marey.profile() as prof:
            with marey.record_function(name):
                pass
        parts.append(prof.trace)
    joined = marey.join_traces(parts)
    assert sorted(event.name for event in joined.events()) == ["first", "second"]
    with pytest.raises(marey.Error, match="one ends before the next"):
        marey.join_traces([parts[0], parts[0]])


def test_stacks_and_chrome_traces_are_written(trace, tmp_path):
    trace.export_chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    trace.export(tmp_path / "trace.folded")
    assert "outer;inner" in (tmp_path / "trace.folded").read_text()
