"""end_on_future: ranges that end when a future is done."""

import asyncio
import contextvars
import gc
import threading
import weakref
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import pytest
from range_rows import range_rows
from recorded import UNFINISHED, is_async, recording

import marey


def taken(future, name="x", method="end_on_future"):
    with marey.record_function(name) as range_:
        return getattr(range_, method)(future)


@pytest.mark.parametrize("method", ["end_on_future", "_call_end_callbacks_on_future"])
def test_the_range_lasts_until_the_future_is_done(method):
    """upstream: _call_end_callbacks_on_future in test_profiler and test_autograd"""
    future = Future()
    with recording() as seen:
        target = taken(future, method=method)
        with marey.record_function("meanwhile"):
            pass
        assert not target.done()
        future.set_result(5)
        assert target.result() == 5
        with marey.record_function("after"):
            pass
    row = seen.one("x")
    end = row["start_ns"] + row["duration_ns"]
    assert seen.one("meanwhile")["start_ns"] < end <= seen.one("after")["start_ns"]
    assert not row["flags"] & UNFINISHED
    assert seen.parent(seen.one("after")) is None


def test_a_future_that_completes_on_another_thread_ends_the_range_there():
    with recording() as seen, ThreadPoolExecutor(1) as pool:
        gate = threading.Event()
        target = taken(pool.submit(gate.wait))
        gate.set()
        assert target.result(10) is True
        with marey.record_function("after"):
            pass
    assert is_async(seen.one("x")) and not seen.one("x")["flags"] & UNFINISHED
    assert seen.parent(seen.one("after")) is None


def test_when_the_returned_future_is_done_the_range_has_ended():
    session = marey.Session()
    session.start()
    future, states = Future(), []
    target = taken(future)
    target.add_done_callback(lambda _: states.append(range_rows(session.snapshot())[0]["flags"]))
    future.set_result(None)
    session.discard()
    assert states and not states[0] & UNFINISHED


def test_exceptions_and_cancellation_pass_through_unchanged():
    error = LookupError("x")
    failed, cancelled = Future(), Future()
    targets = taken(failed), taken(cancelled)
    failed.set_exception(error)
    cancelled.cancel()
    assert targets[0].exception() is error
    assert targets[1].cancelled()
    with pytest.raises(CancelledError):
        targets[1].result()


def test_a_future_that_is_already_done():
    done, failed, cancelled = Future(), Future(), Future()
    done.set_result(1)
    failed.set_exception(KeyError())
    cancelled.cancel()
    with recording() as seen:
        assert taken(done, "a").result() == 1
        assert isinstance(taken(failed, "b").exception(), KeyError)
        assert taken(cancelled, "c").cancelled()
    assert seen.names() == ["a", "b", "c"]
    assert not any(row["flags"] & UNFINISHED for row in seen.rows)


def test_cancelling_the_returned_future_cancels_the_one_it_follows():
    future = Future()
    target = taken(future)
    assert target.cancel() and future.cancelled() and target.cancelled()
    running = Future()
    running.set_running_or_notify_cancel()
    target = taken(running)
    assert not target.cancel() and target.running()
    running.set_result(3)
    assert target.result() == 3 and not target.cancel()


def test_asyncio_futures_and_tasks():
    async def work(outcome):
        await asyncio.sleep(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def main():
        assert await taken(asyncio.ensure_future(work(3)), "value") == 3
        with pytest.raises(LookupError):
            await taken(asyncio.ensure_future(work(LookupError())), "error")
        slow = asyncio.ensure_future(asyncio.sleep(100))
        target = taken(slow, "cancelled")
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await target
        slow = asyncio.ensure_future(asyncio.sleep(100))
        target = taken(slow, "cancelled from here")
        target.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        done = asyncio.get_running_loop().create_future()
        done.set_result(4)
        target = taken(done, "done")
        assert target.done() and await target == 4

    with recording() as seen:
        asyncio.run(main())
    assert sorted(seen.names()) == ["cancelled", "cancelled from here", "done", "error", "value"]
    assert not any(row["flags"] & UNFINISHED for row in seen.rows)


def test_anything_with_add_done_callback():
    class Promise:
        def __init__(self):
            self.callbacks = []

        def add_done_callback(self, callback):
            self.callbacks.append(callback)

        def value(self):
            return "value"

        def complete(self):
            for callback in self.callbacks:
                callback(self)

    promise = Promise()
    with recording() as seen:
        target = taken(promise)
        promise.complete()
    assert target.result(0) == "value"
    assert not seen.one("x")["flags"] & UNFINISHED


def test_mistakes_are_errors_and_leave_the_range_as_it_was():
    range_ = marey.record_function("x")
    with pytest.raises(marey.Error, match="the range is not open"):
        range_.end_on_future(Future())
    with recording() as seen:
        with range_:
            with pytest.raises(TypeError, match="expected a future .*, got int"):
                range_.end_on_future(3)
            first = range_.end_on_future(Future())
            with pytest.raises(marey.Error, match="only be called once"):
                range_.end_on_future(Future())
            assert not range_.run_callbacks_on_exit
        with pytest.raises(marey.Error, match="the range is not open"):
            range_.end_on_future(Future())
        with range_:  # used again, it is a range as any other
            assert range_.run_callbacks_on_exit
    assert len(seen.named("x")) == 2
    del first
    gc.collect()


def test_the_futures_own_the_range():
    with recording() as seen:
        target = taken(Future())  # the source is destroyed at once
        alive = weakref.ref(target)
        with marey.record_function("while it lives"):
            pass
        del target
        gc.collect()
        assert alive() is None
        with marey.record_function("after"):
            pass
    row = seen.one("x")
    assert not row["flags"] & UNFINISHED
    assert row["start_ns"] + row["duration_ns"] <= seen.one("after")["start_ns"]


def test_callbacks_run_in_the_context_of_the_caller():
    variable = contextvars.ContextVar("variable", default="outside")
    got = []

    def caller(future):
        variable.set("caller")
        target = taken(future)
        target.add_done_callback(lambda _: got.append((variable.get(), marey.is_recording())))
        return target

    future = Future()
    session = marey.Session()

    def task():
        session.start(threads="tasks")
        return contextvars.copy_context().run(caller, future)

    results = []
    thread = threading.Thread(target=lambda: (results.append(task()), done.wait()))
    done = threading.Event()
    thread.start()
    while not results:
        pass
    assert not marey.is_recording()
    future.set_result(1)
    done.set()
    thread.join()
    session.discard()
    assert got == [("caller", True)]


def test_it_works_the_same_while_nothing_records():
    future = Future()
    target = taken(future)
    future.set_result(2)
    assert target.result() == 2


def test_a_future_that_leaves_the_block_while_it_is_checked():
    class Leaving:
        @property
        def add_done_callback(self):
            range_.__exit__(None, None, None)
            return lambda callback: callback(self)

    with recording() as seen:
        range_ = marey.record_function("left")
        range_.__enter__()
        with pytest.raises(marey.Error, match="the range is not open"):
            range_.end_on_future(Leaving())
        with marey.record_function("after"):
            pass
    assert seen.one("after")["depth"] == 0
