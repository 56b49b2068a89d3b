"""Generators, coroutines and asynchronous generators: each call with all of its parts."""

import asyncio
import gc
import json
import sys
import types

import pytest
from call_trees import in_thread, name_of_code, rows, short_name
from hypothesis import given, settings
from hypothesis import strategies as st

import marey

EVERY_HOOK = pytest.mark.parametrize("c_calls", [False, True], ids=["python_calls", "c_calls"])
FIRST, LAST = 1, 2


def profiled(work, **options):
    with marey.profile(with_stack=True, **options) as prof:
        work()
    return prof


def calls_of(prof, function):
    """The suspended calls of one function."""
    wanted = name_of_code(function.__code__)
    return [call for call in prof.trace.suspended_calls() if short_name(call.name) == wanted]


def parts_of(prof, function):
    """(call number, part flags) of its ranges, in order of time."""
    wanted = name_of_code(function.__code__)
    found = [row for row in rows(prof) if short_name(row["name"]) == wanted]
    return [(row["call"], row["part"]) for row in sorted(found, key=lambda row: row["start_ns"])]


def count(n):
    for i in range(n):
        got = i
        yield got


@EVERY_HOOK
def test_the_parts_of_a_generator_are_one_call(c_calls):
    prof = profiled(lambda: list(count(3)), c_calls=c_calls)
    (call,) = calls_of(prof, count)
    assert (call.parts, call.finished, call.began_before) == (4, True, False)
    parts = parts_of(prof, count)
    assert {number for number, _ in parts} == {call.number}
    assert [flags for _, flags in parts] == [FIRST, 0, 0, LAST]
    assert call.running_ns + call.suspended_ns == call.end_ns - call.start_ns
    assert call.suspended_ns > 0


@EVERY_HOOK
def test_every_call_has_its_own_number_although_addresses_are_reused(c_calls):
    def work():
        for _ in range(50):
            for _ in count(2):
                pass

    calls = calls_of(profiled(work, c_calls=c_calls), count)
    assert len({call.number for call in calls}) == 50
    assert {call.parts for call in calls} == {3}


@EVERY_HOOK
def test_numbers_are_not_reused_in_the_next_session(c_calls):
    first = calls_of(profiled(lambda: list(count(1)), c_calls=c_calls), count)
    second = calls_of(profiled(lambda: list(count(1)), c_calls=c_calls), count)
    assert first[0].number < second[0].number


@EVERY_HOOK
def test_a_generator_that_is_dropped_in_the_middle_leaves_no_number_to_the_next_one(c_calls):
    def work():
        for _ in range(20):
            next(count(5))  # suspended for good, its memory free

    calls = calls_of(profiled(work, c_calls=c_calls), count)
    assert len(calls) == 20
    assert all(call.parts in (1, 2) for call in calls)  # closing may run it once more


@EVERY_HOOK
def test_a_generator_that_raises_has_ended(c_calls):
    def failing():
        yield 1
        raise ValueError

    def work():
        with pytest.raises(ValueError):
            list(failing())

    assert [flags for _, flags in parts_of(profiled(work, c_calls=c_calls), failing)] == [FIRST, LAST]


@EVERY_HOOK
def test_an_exception_thrown_into_a_generator_that_has_not_begun_is_a_separate_call(c_calls):
    def work():
        for _ in range(3):
            made = count(3)
            with pytest.raises(KeyError):
                made.throw(KeyError)

    parts = parts_of(profiled(work, c_calls=c_calls), count)
    assert [flags for _, flags in parts] == [FIRST | LAST] * 3
    assert len({number for number, _ in parts}) == 3


@EVERY_HOOK
def test_a_generator_suspended_before_the_session_resumes_as_one_call_without_its_start(c_calls):
    made = count(3)
    next(made)
    prof = profiled(lambda: list(made), c_calls=c_calls)
    (call,) = calls_of(prof, count)
    assert (call.parts, call.began_before, call.finished) == (3, True, True)


@EVERY_HOOK
def test_an_unfinished_generator_is_marked(c_calls):
    made = count(3)
    prof = profiled(lambda: (next(made), next(made)), c_calls=c_calls)
    (call,) = calls_of(prof, count)
    assert (call.parts, call.finished, call.began_before) == (2, False, False)
    made.close()


@EVERY_HOOK
def test_a_part_that_runs_at_the_stop_belongs_to_its_call(c_calls):
    prof = marey.profile(with_stack=True, c_calls=c_calls)

    def stopping():
        yield 1
        prof.stop()
        yield 2

    made = stopping()
    prof.start()
    next(made)
    next(made)
    (call,) = calls_of(prof, stopping)
    assert (call.parts, call.finished) == (2, False)
    made.close()


@EVERY_HOOK
def test_a_part_that_runs_at_the_start_belongs_to_its_call(c_calls):
    prof = marey.profile(with_stack=True, c_calls=c_calls)

    def starting():
        prof.start()
        name_of_code(count.__code__)
        yield 1
        yield 2

    list(starting())
    prof.stop()
    (call,) = calls_of(prof, starting)
    assert call.began_before
    assert call.finished
    assert call.parts == 3


@EVERY_HOOK
def test_a_generator_may_resume_on_another_thread(c_calls):
    made = count(2)

    def work():
        next(made)
        in_thread(lambda: list(made))

    prof = profiled(work, c_calls=c_calls)
    (call,) = calls_of(prof, count)
    assert (call.parts, call.finished) == (3, True)


@EVERY_HOOK
def test_coroutines_and_asynchronous_generators_are_calls_with_parts(c_calls):
    async def numbers(n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def inner():
        return [i async for i in numbers(2)]

    async def main():
        return await inner()

    prof = profiled(lambda: asyncio.run(main()), c_calls=c_calls)
    (outer,) = calls_of(prof, main)
    (middle,) = calls_of(prof, inner)
    (innermost,) = calls_of(prof, numbers)
    assert outer.finished and middle.finished and innermost.finished
    assert outer.parts == middle.parts == 3
    assert outer.start_ns <= middle.start_ns <= innermost.start_ns
    assert innermost.end_ns <= middle.end_ns <= outer.end_ns


@EVERY_HOOK
def test_plain_calls_have_no_number(c_calls):
    def plain():
        return 1

    assert parts_of(profiled(plain, c_calls=c_calls), plain) == [(0, 0)]


@EVERY_HOOK
def test_calls_survive_captures_saving_and_exports(c_calls, tmp_path):
    capture = tmp_path / "run.marey"
    prof = profiled(lambda: list(count(3)), c_calls=c_calls, output=str(capture))
    wanted = [call[:2] + call[6:] for call in calls_of(prof, count)]
    prof.trace.save(tmp_path / "saved.marey")
    prof.trace.export(tmp_path / "trace.json")
    prof.trace.export(tmp_path / "trace.pftrace")
    for name in ("run.marey", "saved.marey", "trace.json", "trace.pftrace"):
        trace = marey.load(tmp_path / name)
        found = [call for call in trace.suspended_calls() if short_name(call.name) == name_of_code(count.__code__)]
        assert [call[:2] + call[6:] for call in found] == wanted, name


@EVERY_HOOK
def test_values_and_calls_of_a_range_do_not_hide_each_other(c_calls):
    def work():
        for _ in count(2):
            with marey.range("marked", {"n": 1}) if hasattr(marey, "range") else marey.record_function("marked"):
                pass

    prof = profiled(work, c_calls=c_calls)
    assert calls_of(prof, count)[0].parts == 3


# ---- random programs against sys.setprofile

OPS = st.recursive(
    st.sampled_from([("yield",), ("call",), ("raise",)]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["from", "loop"]), st.lists(inner, max_size=4)),
        st.tuples(st.sampled_from(["take", "throw", "close", "send"]), st.lists(inner, max_size=4), st.integers(0, 3)),
    ),
    max_leaves=12,
)
ASYNC_OPS = st.recursive(
    st.sampled_from([("sleep",), ("call",), ("raise",)]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["await", "gather", "async_for", "task"]), st.lists(inner, max_size=4)),
    ),
    max_leaves=12,
)


class Raised(Exception):
    pass


class Programs:
    """Runs programs made of lists. All objects stay alive, so that frames are distinguished by their addresses."""

    def __init__(self):
        self.alive = []
        self.closed = set()

    def make(self, made):
        self.alive.append(made)
        return made

    def plain(self):
        return 1

    def generator(self, ops):
        for op in ops:
            kind = op[0]
            if kind == "yield":
                yield 1
            elif kind == "call":
                self.plain()
            elif kind == "raise":
                raise Raised
            elif kind == "from":
                yield from self.make(self.generator(op[1]))
            elif kind == "loop":
                for _ in self.make(self.generator(op[1])):
                    pass
            else:
                self.drive(kind, self.make(self.generator(op[1])), op[2])

    def drive(self, kind, made, steps):
        try:
            for _ in range(steps):
                made.send(None) if kind == "send" else next(made)
            if kind == "throw":
                made.throw(Raised)
            elif kind == "close":
                self.closed.add(id(made))
                made.close()
        except (Raised, StopIteration):
            pass

    async def items(self, ops):
        for op in ops:
            await self.step(op)
            yield 1

    async def step(self, op):
        kind = op[0]
        if kind == "sleep":
            await asyncio.sleep(0)
        elif kind == "call":
            self.plain()
        elif kind == "raise":
            raise Raised
        elif kind == "await":
            await self.make(self.coroutine(op[1]))
        elif kind == "gather":
            await asyncio.gather(*(self.make(self.coroutine([each])) for each in op[1]), return_exceptions=True)
        elif kind == "task":
            task = asyncio.create_task(self.make(self.coroutine(op[1])))
            await asyncio.sleep(0)
            await asyncio.wait([task])
            task.exception()
        else:
            async for _ in self.make(self.items(op[1])):
                pass

    async def coroutine(self, ops):
        for op in ops:
            await self.step(op)

    def run(self, ops):
        self.drive("take", self.make(self.generator(ops)), 100)

    def run_async(self, ops):
        try:
            asyncio.run(self.make(self.coroutine(ops)))
        except Raised:
            pass


def is_over(made):
    if isinstance(made, types.GeneratorType):
        return made.gi_frame is None
    return (made.cr_frame if isinstance(made, types.CoroutineType) else made.ag_frame) is None


WATCHED = {name_of_code(f.__code__) for f in (Programs.generator, Programs.coroutine, Programs.items)}


def reference(run, ops):
    """How many parts each call has, in order of their starts, by a plain profile function."""
    programs = Programs()
    parts = {}
    frames = []  # alive, so that no two have one address

    def hook(frame, event, arg):
        if event == "call" and name_of_code(frame.f_code) in WATCHED:
            frames.append(frame)
            parts.setdefault(id(frame), [name_of_code(frame.f_code), 0])[1] += 1

    gc.disable()
    sys.setprofile(hook)
    try:
        run(programs, ops)
    finally:
        sys.setprofile(None)
        gc.enable()
    return [tuple(each) for each in parts.values()]


def recorded(run, ops, c_calls):
    programs = Programs()
    gc.disable()
    try:
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            run(programs, ops)
    finally:
        gc.enable()
    calls = [call for call in prof.trace.suspended_calls() if short_name(call.name) in WATCHED]
    over = sum(is_over(made) for made in programs.alive if id(made) not in programs.closed)
    return calls, over, programs


def check(run, ops, c_calls):
    expected = reference(run, ops)
    calls, over, programs = recorded(run, ops, c_calls)
    assert [(short_name(call.name), call.parts) for call in calls] == expected
    assert len({call.number for call in calls}) == len(calls)
    assert not any(call.began_before for call in calls)
    if not programs.closed:  # closing may run no code
        assert sum(call.finished for call in calls) <= over


@EVERY_HOOK
@settings(max_examples=40, deadline=None)
@given(ops=st.lists(OPS, max_size=6))
def test_random_generators_are_joined_like_the_reference(c_calls, ops):
    check(Programs.run, ops, c_calls)


@EVERY_HOOK
@settings(max_examples=25, deadline=None)
@given(ops=st.lists(ASYNC_OPS, max_size=5))
def test_random_coroutines_are_joined_like_the_reference(c_calls, ops):
    check(Programs.run_async, ops, c_calls)


def test_parts_of_a_call_have_its_number_and_arrows_between_them(tmp_path):
    def numbers():
        yield 1
        yield 2

    with marey.profile(with_stack=True, c_calls=False) as prof:
        list(numbers())
        list(numbers())
    ids = [event.python_call_id for event in prof.events() if event.name.endswith(".numbers")]
    calls = [call for call in prof.trace.suspended_calls() if call.name.endswith(".numbers")]
    assert ids == [call.number for call in calls for _ in range(3)]
    assert {event.python_call_id for event in prof.events() if not event.name.endswith(".numbers")} == {-1}
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    arrows = [event for event in events if event.get("name") == "next part"]
    assert [arrow["ph"] for arrow in arrows].count("s") == [arrow["ph"] for arrow in arrows].count("f") == 4
    starts = {event["ts"] for event in events if event["name"].endswith(".numbers")}
    assert {arrow["ts"] for arrow in arrows} == starts
    again = marey.load(tmp_path / "trace.json")
    again.export_chrome_trace(str(tmp_path / "again.json"))
    text = (tmp_path / "again.json").read_text()
    assert text.count('"name":"next part"') == len(arrows)
