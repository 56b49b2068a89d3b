"""marey.steps and marey.LogHandler, also with real progress bars."""

import io
import json
import logging
import tempfile
from pathlib import Path

import pytest
from recorded import recording

import marey
from marey import _marey  # private: make_result: as `marey steps` and the viewer


def step_names(recorded):
    return [name for name in recorded.names() if "#" in name]


def test_each_iteration_is_a_step_that_contains_its_ranges():
    with recording() as recorded:
        for n in marey.steps(range(3)):
            with marey.record_function(f"work {n}"):
                pass
    assert step_names(recorded) == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    assert recorded.path(recorded.one("work 1")) == ("ProfilerStep#1", "work 1")


def test_reading_the_next_item_is_part_of_a_step():
    def items():
        for n in range(2):
            with marey.record_function(f"read {n}"):
                pass
            yield n

    with recording() as recorded:
        list(marey.steps(items(), name="epoch", start=5))
    assert step_names(recorded) == ["epoch#5", "epoch#6"]
    tables = {table.name: table.value() for table in _marey.make_result(recorded.trace, "steps")}
    assert [step["name"] for step in tables["steps"]] == ["epoch#5", "epoch#6"]
    assert recorded.path(recorded.one("read 0")) == ("read 0",)
    assert recorded.path(recorded.one("read 1")) == ("epoch#5", "read 1")


def test_leaving_the_loop_ends_the_step():
    def items():
        yield 1
        raise ValueError("own")

    with recording() as recorded:
        for _ in marey.steps(range(5)):
            break
        with pytest.raises(ValueError, match="own"):
            list(marey.steps(items(), name="failing"))
        with marey.record_function("after"):
            pass
    assert step_names(recorded) == ["ProfilerStep#0", "failing#0"]
    assert recorded.path(recorded.one("after")) == ("after",)


def test_steps_of_nested_loops_nest():
    with recording() as recorded:
        for _ in marey.steps(range(2), name="epoch"):
            for _ in marey.steps(range(2), name="batch"):
                pass
    paths = [recorded.path(row) for row in recorded.rows]
    assert paths[:3] == [("epoch#0",), ("epoch#0", "batch#0"), ("epoch#0", "batch#1")]


def test_a_loop_without_a_session_has_no_steps_and_the_same_items():
    assert list(marey.steps("abc")) == ["a", "b", "c"]
    assert len(marey.steps([1, 2])) == 2
    with pytest.raises(TypeError, match="has no len"):
        len(marey.steps(iter([])))


@pytest.mark.parametrize(
    ("arguments", "message"), [((3,), "expected an iterable, got int"), (([], 3), "must be a str")]
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        marey.steps(*arguments)


def test_steps_inside_and_around_tqdm():
    tqdm = pytest.importorskip("tqdm").tqdm
    out = io.StringIO()
    with recording() as recorded:
        assert list(tqdm(marey.steps(range(3)), file=out)) == [0, 1, 2]
        assert list(marey.steps(tqdm(range(2), file=out), start=10)) == [0, 1]
    assert len(step_names(recorded)) == 5
    assert "3/3" in out.getvalue() and "2/2" in out.getvalue()


def test_steps_inside_and_around_rich():
    progress = pytest.importorskip("rich.progress")
    console = pytest.importorskip("rich.console").Console(file=io.StringIO())
    with recording() as recorded:
        assert list(progress.track(marey.steps(range(3)), console=console)) == [0, 1, 2]
        assert list(marey.steps(progress.track(range(2), console=console), start=10)) == [0, 1]
    assert len(step_names(recorded)) == 5


# ---- logs


@pytest.fixture
def logger():
    logger = logging.Logger("shop.cart")
    handler = marey.LogHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    return logger


def test_log_records_are_instants_with_their_message_and_place(logger):
    with recording() as recorded:
        logger.warning("%d items left", 3)
        logger.error("no\nstock \u00fc")
    info = recorded.trace.to_pandas("instants")
    assert list(info["name"]) == ["WARNING shop.cart", "ERROR shop.cart"]
    chrome = exported(recorded.trace)
    assert chrome["WARNING shop.cart"]["message"] == "3 items left"
    assert chrome["ERROR shop.cart"]["message"] == "no\nstock \u00fc"
    assert "test_steps_and_logs.py:" in chrome["ERROR shop.cart"]["place"]


def exported(trace):
    """The values of the instants in a Chrome trace, by name."""
    with tempfile.TemporaryDirectory() as folder:
        trace.export_chrome_trace(Path(folder) / "a.json")
        events = json.loads((Path(folder) / "a.json").read_text())["traceEvents"]
    return {event["name"]: event.get("args", {}) for event in events if event["ph"] in "iI"}


def test_messages_are_formatted_only_while_a_session_records(logger):
    class Message:
        count = 0

        def __str__(self):
            Message.count += 1
            return "text"

    logger.warning(Message())
    assert Message.count == 0
    with recording():
        logger.warning(Message())
    assert Message.count == 1


def test_a_wrong_message_and_a_long_one_do_no_harm(logger, capsys):
    with recording() as recorded:
        logger.warning("%d", "no number")
        logger.warning("x" * 1_000_000)
        logger.warning("\udc80 \0")
    assert "--- Logging error ---" in capsys.readouterr().err
    assert len(recorded.trace.to_pandas("instants")) == 2
