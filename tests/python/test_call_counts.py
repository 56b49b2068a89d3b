"""How often something was called: recursive calls count each, a suspended call once."""

import asyncio
import itertools
import json
import pickle
import subprocess
import sys

import pytest
from call_trees import name_of_code, short_name
from running import captures, environment, recorded, report

import marey
from marey import EventList, FunctionEvent

EVERY_HOOK = pytest.mark.parametrize("c_calls", [False, True], ids=["python_calls", "c_calls"])


def profiled(work, **options):
    with marey.profile(with_stack=True, **options) as prof:
        work()
    return prof


def of(events, function):
    """Those of one function."""
    wanted = name_of_code(function.__code__)
    return [event for event in events if short_name(event.key) == wanted]


def count_of(averages, function):
    (average,) = of(averages, function)
    return average.count


def down(n):
    n and down(n - 1)


def gen(n):
    for i in range(n):
        got = i
        yield got


def walk(depth):
    if depth:
        yield from walk(depth - 1)
    yield depth


@EVERY_HOOK
def test_every_step_of_a_recursion_is_an_event_and_a_call(c_calls, tmp_path):
    prof = profiled(lambda: down(99), c_calls=c_calls)
    assert count_of(prof.key_averages(), down) == 100
    assert count_of(prof.events().key_averages(), down) == 100
    events = of(prof.events(), down)
    assert len(events) == 100
    assert all(inner.cpu_parent is outer for outer, inner in itertools.pairwise(events))
    assert all(outer.cpu_children == [inner] for outer, inner in itertools.pairwise(events))
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    exported = json.loads(path.read_text())["traceEvents"]
    name = events[0].name
    assert sum(each.get("ph") == "X" and each["name"] == name for each in exported) == 100
    assert count_of(marey.load(str(path)).key_averages(), down) == 100


def test_modified_lists_keep_recursive_calls():
    prof = profiled(lambda: down(9), c_calls=False)
    changed = prof.events()
    changed.reverse()
    assert count_of(changed.key_averages(), down) == 10
    touched = profiled(lambda: down(9), c_calls=False).events()
    touched[0].flops = 1
    assert count_of(touched.key_averages(), down) == 10
    copied = pickle.loads(pickle.dumps(prof.events()))
    assert count_of(copied.key_averages(), down) == 10


@pytest.mark.parametrize("what", [{"is_python_function": True}, {"scope": 10}, {"scope": 11}])
def test_calls_made_by_hand_are_not_repetitions(what):
    def nested(**options):
        events = EventList([FunctionEvent(i, "f", 1, i, 100 - i, **options) for i in range(5)])
        events._build_tree()
        return events

    assert [event.id for event in nested(**what)] == [0, 1, 2, 3, 4]
    assert nested(**what).key_averages()[0].count == 5
    assert [event.id for event in nested()] == [0]
    mixed = EventList([FunctionEvent(0, "f", 1, 0, 9, **what), FunctionEvent(1, "f", 1, 1, 8)])
    mixed._build_tree()
    assert [event.id for event in mixed] == [0, 1]


def test_ranges_that_repeat_their_parents_stay_one_event():
    def work():
        with marey.record_function("again"), marey.record_function("again"):
            pass

    prof = profiled(work, c_calls=False)
    assert [event.name for event in prof.events()].count("again") == 1


@EVERY_HOOK
def test_a_generator_is_one_call_however_often_it_runs(c_calls):
    prof = profiled(lambda: sum(gen(1000)), c_calls=c_calls)
    for averages in (prof.key_averages(), prof.events().key_averages()):
        (average,) = of(averages, gen)
        assert average.count == 1
        assert average.cpu_time == average.cpu_time_total
    events = of(prof.events(), gen)
    assert len(events) == 1001, "events stay events"
    (average,) = of(prof.key_averages(), gen)
    assert average.cpu_time_total == pytest.approx(sum(event.cpu_time_total for event in events))
    assert average.max == pytest.approx(max(event.cpu_time_total for event in events))


@EVERY_HOOK
def test_recursive_generators_count_each_of_their_calls(c_calls):
    prof = profiled(lambda: (list(walk(5)), list(walk(5))), c_calls=c_calls)
    assert count_of(prof.key_averages(), walk) == 12


@EVERY_HOOK
def test_coroutines_count_once_each(c_calls):
    async def step():
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(step() for _ in range(7)))

    prof = profiled(lambda: asyncio.run(main()), c_calls=c_calls)
    assert count_of(prof.key_averages(), step) == 7
    assert count_of(prof.key_averages(), main) == 1


def test_a_generator_started_before_the_session_counts_once():
    running = gen(100)
    next(running)
    prof = profiled(lambda: [next(running) for _ in range(20)], c_calls=False)
    assert count_of(prof.key_averages(), gen) == 1
    assert len(of(prof.events(), gen)) == 20


def test_percentiles_are_computed_over_the_parts():
    prof = profiled(lambda: sum(gen(50)), c_calls=False)
    durations = sorted(event.cpu_time_total for event in of(prof.events(), gen))
    (average,) = of(prof.events().key_averages(percentiles=True), gen)
    assert average.count == 1
    assert average.p50 == pytest.approx(durations[(51 * 50 + 99) // 100 - 1])
    assert average.p99 == pytest.approx(durations[-1])


def test_reports_and_summaries_of_a_program_count_calls(tmp_path):
    (tmp_path / "program.py").write_text(
        "def gen(n):\n"
        "    for i in range(n):\n"
        "        yield i\n"
        "def down(n):\n"
        "    n and down(n - 1)\n"
        "sum(gen(1000))\n"
        "list(gen(1000))\n"
        "down(99)\n"
    )
    _, summary, _ = recorded(["program.py"], tmp_path, run_options=("--no-c-calls",))
    (path,) = captures(tmp_path)
    assert calls_column(summary, "gen") == "2"
    assert calls_column(summary, "down") == "100"
    for by in ("name", "function"):
        text = text_report(path, "--by", by)
        assert (calls_column(text, "gen"), calls_column(text, "down")) == ("2", "100")
    (counts,) = [
        count for name, count in report(path, "--by=file", "--csv", "--columns=name,count") if name == "program.py"
    ]
    assert int(counts) == 1 + 2 + 100


def text_report(path, *options):
    command = [sys.executable, "-m", "marey", "report", *options, str(path)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


def calls_column(text, function):
    """How often a function was called, by a table of calls."""
    lines = text.splitlines()
    (titles,) = [line for line in lines if "per call" in line]
    (line,) = [line for line in lines if line.rstrip().endswith(f": {function}")]
    return line[: titles.index("calls") + len("calls")].split()[-1]
