"""Web requests and the tasks that they start."""

import asyncio
import gc
import inspect
import threading

import pytest
from call_trees import short_name
from recorded import recording
from web_clients import Route

import marey
from marey.recording.request_ranges import RequestRange  # private: its objects are counted
from marey.web import MareyMiddleware

TASK, RUNNING, THREAD = (f"GET /users/{{id}} ({place})" for place in ("in a task", "running", "in a thread"))


def mark(name):
    with marey.record_function(name):
        pass


async def worker(name, steps=1):
    for _ in range(steps):
        mark(name)
        await asyncio.sleep(0)
    return name


async def call(app, path="/users/7"):
    await MareyMiddleware(app)({"type": "http", "method": "GET", "path": path, "headers": []}, None, None)


def record(app, **options):
    """Handle one request; return its record."""
    with recording(**options) as recorded:
        asyncio.run(call(app))
    return recorded


def test_tasks_of_a_request_are_named_after_it():
    released = threading.Event()

    async def nested():
        mark("outer")
        return await asyncio.create_task(worker("inner"))

    async def app(scope, receive, send):
        scope["route"] = Route
        assert await asyncio.gather(worker("gathered", 3), worker("gathered", 3)) == ["gathered"] * 2
        async with asyncio.timeout(60):
            assert await asyncio.create_task(nested(), name="own name") == "inner"
        async with asyncio.TaskGroup() as group:
            group.create_task(worker("grouped"))
        await asyncio.wait_for(asyncio.ensure_future(worker("waited for")), 60)
        waits = asyncio.create_task(asyncio.to_thread(lambda: released.wait() and mark("threaded")))
        asyncio.get_running_loop().call_soon(released.set)  # after the task has begun to wait
        assert await waits is None
        mark("plain")

    async def main():
        await call(app)
        await asyncio.gather(worker("of nobody"), worker("of nobody"))

    with recording() as recorded:
        asyncio.run(main())
    for name in ("gathered", "outer", "inner", "grouped", "waited for"):
        assert {recorded.path(row) for row in recorded.named(name)} == {(TASK, name)}, name
    assert recorded.path(recorded.one("plain")) == (RUNNING, "plain")
    assert recorded.path(recorded.one("threaded")) == (THREAD, "threaded")
    assert {recorded.path(row) for row in recorded.named("of nobody")} == {("of nobody",)}
    calls = [call for call in recorded.trace.suspended_calls() if call.name == TASK]
    assert sorted(call.parts for call in calls) == [2, 2, 2, 2, 2, 4, 4] and all(call.finished for call in calls)


def test_tasks_outlive_their_request_and_hold_nothing_afterwards():
    left = []

    async def app(scope, receive, send):
        scope["route"] = Route
        left.append(asyncio.create_task(worker("later", 5)))

    async def main():
        await call(app)
        assert await left[0] == "later"

    with recording() as recorded:
        asyncio.run(main())
    assert [recorded.path(row) for row in recorded.named("later")] == [(TASK, "later")] * 5
    left.clear()
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, RequestRange)]


def test_a_task_shows_the_coroutine_of_the_program():
    async def app(scope, receive, send):
        coroutine = worker("shown", 2)
        task = asyncio.create_task(coroutine)
        held = task.get_coro()
        assert asyncio.iscoroutine(held) and inspect.getcoroutinestate(held) == "CORO_CREATED"
        assert held.cr_frame is coroutine.cr_frame and held.__qualname__ == "worker"
        await asyncio.sleep(0)
        assert inspect.getcoroutinestate(held) == "CORO_SUSPENDED" and held.cr_await is not None
        assert "coro=<worker() running at" in repr(task) and task.get_stack()[-1] is coroutine.cr_frame
        await task
        assert held.cr_frame is None and "coro=<worker() done" in repr(task)
        with pytest.raises(AttributeError, match="no attribute 'unknown'"):
            held.unknown

    assert record(app).named("shown")


def test_errors_and_cancellations_of_tasks_are_unchanged():
    async def fails():
        mark("fails")
        raise KeyError("own")

    async def waits():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            mark("cancelled")
            raise

    async def app(scope, receive, send):
        scope["route"] = Route
        with pytest.raises(KeyError, match="own") as raised:
            await asyncio.create_task(fails())
        assert [entry.name for entry in raised.traceback] == ["app", "fails"]
        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TypeError, match="a coroutine was expected"):
            await asyncio.create_task(3)
        loop = asyncio.get_running_loop()
        factory = []
        loop.set_task_factory(lambda loop, coro, **rest: factory.append(coro) or asyncio.Task(coro, loop=loop, **rest))
        await asyncio.create_task(worker("made by a factory"))
        loop.set_task_factory(None)
        assert factory[0].__name__ == "worker"

    recorded = record(app)
    for name in ("fails", "cancelled", "made by a factory"):
        assert {recorded.path(row) for row in recorded.named(name)} == {(TASK, name)}


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="needs Python 3.12")
def test_an_eager_task_runs_inside_of_the_part_that_starts_it():
    async def app(scope, receive, send):
        scope["route"] = Route
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        await asyncio.create_task(worker("eager"))

    recorded = record(app)
    assert recorded.path(recorded.one("eager")) == (RUNNING, TASK, "eager")


def test_recorded_calls_still_know_their_tasks():
    async def app(scope, receive, send):
        await asyncio.gather(asyncio.create_task(worker("a", 2), name="own name"), worker("b"))

    tasks = {task.name: short_name(task.coroutine) for task in record(app, with_stack=True).trace.tasks()}
    assert "worker" in tasks["own name"] and len([name for name in tasks.values() if "worker" in name]) == 2


def test_a_request_that_another_one_starts_keeps_its_own_tasks():
    """Servers start the next request of a connection where the last one has sent its response."""

    async def other(scope, receive, send):
        await asyncio.create_task(worker("of the next"))
        await asyncio.sleep(0)
        mark("next")

    async def app(scope, receive, send):
        scope["route"] = Route
        app.next = asyncio.create_task(call(other, "/next"))
        await asyncio.sleep(0)

    async def main():
        await call(app)
        await app.next

    with recording() as recorded:
        asyncio.run(main())
    other_names = ("GET (no route) (in a task)", "GET (no route) (running)")
    assert recorded.path(recorded.one("next")) == (*other_names, "next")
    assert recorded.path(recorded.one("of the next")) == (other_names[0], "of the next")
    assert not recorded.named(TASK)
