"""nvprof files as events."""

import pathlib
import sqlite3

import pytest

import marey
from marey import EventList
from marey.profiler import load_nvprof, parse_nvprof_trace

SAMPLES = pathlib.Path(__file__).resolve().parents[1] / "data" / "samples"


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "nvprof.sqlite"
    with sqlite3.connect(path) as connection:
        for name in ("nvprof_schema.sql", "nvprof_rows.sql"):
            connection.executescript((SAMPLES / name).read_text())
    try:
        load_nvprof(path)
    except marey.Error as error:
        if "without SQLite" in str(error):
            pytest.skip("this build of Marey has no SQLite")
        raise
    return path


def test_an_nvprof_file_is_a_list_of_events_in_order(database):
    events = load_nvprof(database)
    assert isinstance(events, EventList)
    names = [event.name for event in events]
    assert "aten::mm" in names and "gemm(float*, float*, int)" in names
    starts = [event.time_range.start for event in events]
    assert starts == sorted(starts)


def test_kernels_are_on_the_calls_that_launched_them_and_averages_work(database):
    """Times are microseconds, and the list is nested."""
    events = parse_nvprof_trace(str(database))
    (mm, *_) = [event for event in events if event.name == "aten::mm"]
    assert mm.kernels and all(kernel.duration > 0 for kernel in mm.kernels)
    averages = {avg.key: avg for avg in load_nvprof(database).key_averages()}
    assert averages["aten::mm"].device_time_total == pytest.approx(sum(kernel.duration for kernel in mm.kernels))
    assert "Self CUDA" in load_nvprof(database).table()


def test_other_files_are_errors(tmp_path):
    path = tmp_path / "other"
    path.write_text("nothing")
    with pytest.raises(marey.Error):
        load_nvprof(path)
