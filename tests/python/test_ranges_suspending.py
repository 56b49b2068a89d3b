"""The decorator on generators, coroutines and async generators."""

import asyncio
import functools
import gc
import inspect
import types

import pytest
from recorded import is_async, recording

import marey


@marey.record_function("gen")
def countdown(n):
    """counts"""
    got = []
    while n:
        try:
            got.append((yield n))
        except KeyError as error:
            got.append(repr(error))
        n -= 1
    return got


@marey.record_function("co")
async def waits(n):
    for _ in range(n):
        with marey.record_function("inside"):
            pass
        await asyncio.sleep(0)
    return n


@marey.record_function("agen")
async def emits(n):
    try:
        for i in range(n):
            await asyncio.sleep(0)
            try:
                sent = yield i
            except KeyError:
                sent = "key error"
            if sent is not None:
                await asyncio.sleep(0)
                yield sent
    finally:
        with marey.record_function("cleanup"):
            await asyncio.sleep(0)


def test_each_stretch_of_a_generator_is_a_range_and_its_life_is_async():
    with recording() as seen:
        with marey.record_function("consumer"):
            for _ in countdown(3):
                with marey.record_function("body"):
                    pass
    stretches = seen.named("gen")
    assert len(stretches) == 4
    assert not any(is_async(row) for row in stretches)
    life = seen.one("gen (life)")
    assert is_async(life)
    assert life["start_ns"] <= stretches[0]["start_ns"]
    assert all(row["start_ns"] + row["duration_ns"] <= life["start_ns"] + life["duration_ns"] for row in stretches)
    assert [seen.parent(row) for row in seen.named("body")] == ["consumer"] * 3


def test_generators_keep_their_protocol():
    with recording():
        gen = countdown(3)
        assert next(gen) == 3
        assert gen.send("a") == 2
        assert gen.throw(KeyError("k")) == 1
        with pytest.raises(StopIteration) as stopped:
            gen.send("b")
        assert stopped.value.value == ["a", "KeyError('k')", "b"]
        gen = countdown(3)
        next(gen)
        with pytest.raises(ValueError):
            gen.throw(ValueError)
        gen = countdown(3)
        next(gen)
        gen.close()
        assert list(gen) == []


def test_a_generator_that_is_closed_or_dropped_ends_its_life():
    with recording() as seen:
        gen = countdown(5)
        next(gen)
        del gen
        with marey.record_function("after"):
            pass
    assert len(seen.named("gen")) == 2  # a first stretch, and the one of closing
    assert seen.one("gen (life)")["flags"] == 4
    assert seen.parent(seen.one("after")) is None


def test_a_generator_that_never_ran_leaves_nothing():
    with recording() as seen:
        countdown(5).close()
    assert seen.names() == []


def test_coroutines_separate_running_and_waiting():
    async def main():
        return await asyncio.gather(waits(2), waits(3), asyncio.sleep(0.01))

    with recording() as seen:
        assert asyncio.run(main())[:2] == [2, 3]
    assert len(seen.named("co")) == 3 + 4
    assert len(seen.named("co (life)")) == 2
    assert not any(is_async(row) for row in seen.named("co"))
    assert {seen.parent(row) for row in seen.named("inside")} == {"co"}


async def emit_all():
    async for _ in emits(2):
        pass


async def cancel():
    task = asyncio.create_task(waits(9))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("traced", [False, True], ids=["ranges", "with_calls"])
@pytest.mark.parametrize(
    ("name", "work", "parts"),
    [
        ("gen", lambda: list(countdown(3)), 4),
        ("gen", lambda: next(countdown(3)), 2),  # run, and closed
        ("co", lambda: asyncio.run(waits(2)), 3),
        ("co", lambda: asyncio.run(cancel()), 2),
        ("agen", lambda: asyncio.run(emit_all()), 6),
        ("with text", lambda: list(marey.record_function("with text", "some")(countdown.__wrapped__)(1)), 2),
    ],
    ids=["generator", "closed", "coroutine", "cancelled", "async_generator", "with_values"],
)
def test_a_call_of_a_decorated_function_counts_once_however_often_it_runs(name, work, parts, traced):
    with marey.profile(with_stack=traced, record_shapes=True) as prof:
        for _ in range(5):
            work()
    (row,) = [row for row in prof.key_averages() if row.key == name]
    assert row.count == 5
    calls = [call for call in prof.trace.suspended_calls() if call.name == name]
    assert [(call.parts, call.finished, call.began_before) for call in calls] == [(parts, True, False)] * 5


def test_a_garbage_collection_at_the_end_of_a_part_does_not_make_it_another_call():
    threshold = gc.get_threshold()
    gc.set_threshold(1)  # from Python 3.12 on, collections wait for the end of a call
    try:
        with marey.profile(with_stack=True) as prof:
            for _ in range(5):
                asyncio.run(cancel())
    finally:
        gc.set_threshold(*threshold)
    assert [row.count for row in prof.key_averages() if row.key == "co"] == [5]


def test_coroutines_pass_exceptions_and_cancellation_through():
    @marey.record_function("fails")
    async def fails():
        await asyncio.sleep(0)
        raise LookupError("x")

    @marey.record_function("slow")
    async def slow():
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            raise

    async def main():
        with pytest.raises(LookupError):
            await fails()
        task = asyncio.create_task(slow())
        await asyncio.sleep(0)
        task.cancel("why")
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(slow(), 0.001)

    with recording() as seen:
        asyncio.run(main())
    assert len(seen.named("slow (life)")) == 2
    assert not any(row["flags"] & 2 for row in seen.rows)


def test_a_traceback_has_one_frame_of_the_decorator():
    @marey.record_function("fails")
    async def fails():
        await asyncio.sleep(0)
        raise KeyError("own")

    with pytest.raises(KeyError, match="own") as raised:
        asyncio.run(fails())
    assert [entry.name for entry in raised.traceback][-2:] == ["coroutine", "fails"]


def test_async_generators_keep_their_protocol():
    async def main():
        assert [i async for i in emits(3)] == [0, 1, 2]
        agen = emits(3)
        assert await agen.__anext__() == 0
        assert await agen.asend("sent") == "sent"
        assert await agen.asend(None) == 1
        assert await agen.athrow(KeyError) == "key error"
        await agen.aclose()
        with pytest.raises(StopAsyncIteration):
            await agen.__anext__()
        agen = emits(2)
        await agen.__anext__()
        with pytest.raises(ValueError):
            await agen.athrow(ValueError("x"))

    with recording() as seen:
        asyncio.run(main())
    assert len(seen.named("agen (life)")) == 3
    assert len(seen.named("cleanup")) == 3
    assert not any(row["flags"] & 2 for row in seen.rows)
    lives = sum(row["duration_ns"] for row in seen.named("agen (life)"))
    assert 0 < sum(row["duration_ns"] for row in seen.named("agen")) < lives


def test_a_decorated_function_keeps_its_kind():
    assert inspect.isgeneratorfunction(countdown)
    assert inspect.iscoroutinefunction(waits) and asyncio.iscoroutinefunction(waits)
    assert inspect.isasyncgenfunction(emits)
    assert not inspect.iscoroutinefunction(marey.record_function("x")(len))
    assert countdown.__doc__ == "counts" and countdown.__name__ == "countdown"
    assert countdown.__wrapped__ is not countdown
    assert str(inspect.signature(countdown)) == "(n)"

    partial = marey.record_function("p")(functools.partial(waits.__wrapped__, 1))
    assert inspect.iscoroutinefunction(partial)

    @marey.record_function("old")
    @types.coroutine
    def old():
        yield from asyncio.sleep(0)
        return 5

    async def main():
        return await old()

    assert asyncio.run(main()) == 5


def test_methods_that_suspend():
    class Things:
        @marey.record_function("m")
        async def method(self, x):
            await asyncio.sleep(0)
            return x

        @classmethod
        @marey.record_function("c")
        def each(cls, n):
            yield from range(n)

        @marey.record_function("s")
        @staticmethod
        async def static(x):
            return x

    with recording() as seen:
        assert asyncio.run(Things().method(3)) == 3
        assert list(Things.each(2)) == [0, 1]
        assert asyncio.run(Things.static(4)) == 4
    assert len(seen.named("m")) == 2 and len(seen.named("c")) == 3 and len(seen.named("s")) == 1


def test_suspending_functions_run_the_same_while_nothing_records():
    assert list(countdown(2)) == [2, 1]
    assert asyncio.run(waits(1)) == 1

    async def main():
        return [i async for i in emits(2)]

    assert asyncio.run(main()) == [0, 1]


def test_a_block_around_an_await_is_async_if_it_overlaps_others():
    async def one(name, first, second):
        with marey.record_function(name):
            first.set()
            await second.wait()

    async def main():
        a, b = asyncio.Event(), asyncio.Event()
        await asyncio.gather(one("a", a, b), one("b", b, a))

    with recording() as seen:
        asyncio.run(main())
    assert sorted(seen.names()) == ["a", "b"]
    assert not any(row["flags"] & 2 for row in seen.rows)
