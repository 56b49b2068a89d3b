"""The context follows the work: sessions of one thread and its tasks follow the work that it starts."""

import asyncio
import contextlib
import contextvars
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from recorded import recording

import marey
from marey.context import propagation


@contextlib.contextmanager
def following(threads="tasks"):
    with recording(threads=threads) as seen:
        token = propagation.install()
        try:
            yield seen
        finally:
            propagation.remove(token)


def mark(name):
    with marey.record_function(name):
        return threading.get_ident()


def run_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


def test_threads_started_by_a_followed_thread_are_followed():
    """upstream: test_with_enable_profiler_in_child_thread_cuda (its way of opting in)"""

    def outer():
        mark("outer")
        run_thread(mark, "inner")

    with following() as seen:
        mark("own")
        run_thread(outer)
    assert sorted(seen.names()) == ["inner", "outer", "own"]


def test_threads_started_elsewhere_are_not_followed():
    """upstream: test_without_enable_profiler_in_child_thread_cuda"""
    begin, done = threading.Event(), threading.Event()

    def other():
        begin.wait()
        mark("other")
        run_thread(mark, "of other")
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with following() as seen:
        begin.set()
        done.wait()
        mark("own")
    thread.join()
    assert seen.names() == ["own"]


def test_subclasses_of_thread_that_override_run_are_followed():
    class Mine(threading.Thread):
        def run(self):
            mark("mine")

    with following() as seen:
        thread = Mine()
        thread.start()
        thread.join()
        timer = threading.Timer(0, mark, ["timer"])
        timer.start()
        timer.join()
    assert seen.names() == ["mine", "timer"]


def test_pool_tasks_have_the_context_of_their_submitter():
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(mark, "before").result()
        with following() as seen:
            assert pool.submit(mark, "mine").result() == before
            results = []
            run_outside(lambda: results.append(pool.submit(mark, "of other").result()))
            assert list(pool.map(mark, ["m1", "m2"])) == [before, before]
            assert results == [before]
        pool.submit(mark, "after").result()
    assert sorted(seen.names()) == ["m1", "m2", "mine"]


_work = None
_wake, _done = threading.Semaphore(0), threading.Semaphore(0)


def _outside():
    while True:
        _wake.acquire()
        _work()
        _done.release()


threading.Thread(target=_outside, daemon=True).start()


def run_outside(function):
    """Runs it on a thread that was there before any session."""
    global _work
    _work = function
    _wake.release()
    _done.acquire()


def test_a_pool_made_while_profiling_keeps_no_context():
    with following() as seen, ThreadPoolExecutor(1) as pool:
        pool.submit(mark, "mine").result()
        run_outside(lambda: pool.submit(mark, "of other").result())
    assert seen.names() == ["mine"]


def test_tasks_of_a_loop_on_another_thread_are_followed():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def work(name):
        mark(name)
        await asyncio.sleep(0)
        mark(name)
        await asyncio.gather(inner(name), asyncio.to_thread(mark, name + " thread"))

    async def inner(name):
        await asyncio.sleep(0.001)
        mark(name + " inner")

    with following() as seen:
        asyncio.run_coroutine_threadsafe(work("mine"), loop).result()
        run_outside(lambda: asyncio.run_coroutine_threadsafe(work("of other"), loop).result())
        fired = threading.Event()
        loop.call_soon_threadsafe(lambda: (mark("soon"), fired.set()))
        fired.wait()
    asyncio.run_coroutine_threadsafe(work("after"), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    assert sorted(seen.names()) == ["mine", "mine", "mine inner", "mine thread", "soon"]


def test_a_contextvars_context_carries_the_marey_context():
    fast = marey.record_function_fast("fast")
    decorated = marey.record_function("decorated")(lambda: None)

    def work():
        mark("with")
        with fast:
            pass
        decorated()
        marey.begin("begun")
        marey.end()

    with following() as seen:
        carried = contextvars.copy_context()
        run_outside(lambda: carried.run(work))
        run_outside(work)
    run_outside(lambda: carried.run(work))
    assert seen.names() == ["with", "fast", "decorated", "begun"]


def test_a_loop_on_a_separate_thread_is_left_alone():
    async def main():
        mark("main")
        await asyncio.gather(*(asyncio.create_task(child(i)) for i in range(3)))

    async def child(i):
        await asyncio.sleep(0)
        mark(f"child {i}")

    with following() as seen:
        asyncio.run(main())
    assert sorted(seen.names()) == ["child 0", "child 1", "child 2", "main"]


def test_nested_sessions_each_record_their_own_tasks():
    with following() as outer:
        run_thread(mark, "first")
        with following() as inner:
            run_thread(mark, "second")
        run_thread(mark, "third")
    assert outer.names() == ["first", "second", "third"]
    assert inner.names() == ["second"]


PATCHED = [
    (threading.Thread, "start"),
    (threading.Thread, "_bootstrap_inner"),
    (ThreadPoolExecutor, "submit"),
    (asyncio.events.Handle, "_run"),
]


def test_replaced_functions_are_restored_with_the_last_session():
    before = [owner.__dict__[name] for owner, name in PATCHED]
    with following():
        with following("all"):
            pass
        for (owner, name), original in zip(PATCHED, before):
            wrapper = owner.__dict__[name]
            assert wrapper is not original and wrapper.__wrapped__ is original
            assert wrapper.__name__ == original.__name__
            assert inspect.signature(wrapper) == inspect.signature(original)
    assert [owner.__dict__[name] for owner, name in PATCHED] == before


def test_functions_replaced_by_other_code_since_are_left_alone():
    original = threading.Thread.start
    calls = []
    with following():
        ours = threading.Thread.start

        def theirs(self):
            calls.append(self)
            return ours(self)

        theirs.__wrapped__ = ours
        threading.Thread.start = theirs
    try:
        assert threading.Thread.start is theirs
        run_thread(lambda: None)
        with following() as seen:
            assert threading.Thread.start is theirs  # our wrapper is still called by it
            run_thread(mark, "x")
        assert seen.names() == ["x"] and len(calls) == 2
        threading.Thread.start = ours
        with following() as seen:
            run_thread(mark, "y")
        assert seen.names() == ["y"]
    finally:
        threading.Thread.start = original
    assert threading.Thread.start is original


def test_exceptions_and_results_come_through():
    def fail():
        raise LookupError("x")

    with following(), ThreadPoolExecutor(1) as pool:
        with pytest.raises(LookupError) as caught:
            pool.submit(fail).result()
        assert [entry.name for entry in caught.traceback][-1] == "fail"
        assert "marey/_context.py" not in "".join(str(entry.path) for entry in caught.traceback[1:])
        assert pool.submit(dict, a=1).result() == {"a": 1}
        with pytest.raises(TypeError):
            pool.submit()
        thread = threading.Thread(target=lambda: None)
        thread.start()
        with pytest.raises(RuntimeError, match="once"):
            thread.start()
        thread.join()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(fail)


def test_contexts_are_values():
    empty = marey._marey.Context()
    assert empty.is_empty and empty.run(lambda *a, **k: (a, k), 1, b=2) == ((1,), {"b": 2})
    assert marey._marey.Context.current().is_empty
    with following():
        context = marey._marey.Context.current()
        assert not context.is_empty
        assert not empty.run(marey.is_recording) and marey.is_recording()
        with pytest.raises(ZeroDivisionError):
            context.run(lambda: 1 / 0)
        with pytest.raises(TypeError):
            context.run()
    assert not context.run(marey.is_recording)  # a session that has stopped is out of every context


PROCESSES = """
import multiprocessing, os, sys, threading
from concurrent.futures import ProcessPoolExecutor
import marey
from marey import _marey  # private: Context: public only through threads and tasks
from marey.context import propagation

def work(n):
    with marey.record_function("child"):
        results = []
        thread = threading.Thread(target=lambda: results.append(n * 2))
        thread.start(); thread.join()
        return results[0]

def grandchild(method):
    process = multiprocessing.get_context(method).Process(target=work, args=(1,))
    process.start()
    process.join()
    with marey.record_function("between"):
        pass

def die():
    work(1)
    os.kill(os.getpid(), 9)

if __name__ == "__main__":
    method = sys.argv[1]
    context = multiprocessing.get_context(method)
    session = marey.Session(); session.start(threads=sys.argv[2])
    token = propagation.install(session)
    with context.Pool(2) as pool:
        assert pool.map(work, range(4)) == [0, 2, 4, 6]
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        assert executor.submit(work, 5).result() == 10
    for target, args in ((grandchild, (method,)), (die, ())):
        process = context.Process(target=target, args=args)
        process.start()
        process.join()
        print(process.exitcode)
    with marey.record_function("parent"):
        pass
    propagation.remove(token)
    events = session.stop().events()
    print(sorted(event.name for event in events))
    print(all(event.is_remote for event in events if event.name != "parent"))
    work(1)
    context.Process(target=work, args=(1,)).start()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_are_followed_for_every_start_method(run_python, method):
    out = run_python(PROCESSES, arguments=[method, "tasks"]).splitlines()
    assert out == ["0", "-9", str(["between"] + ["child"] * 7 + ["parent"]), "True"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_session_of_all_threads_records_this_process_only(run_python, method):
    out = run_python(PROCESSES, arguments=[method, "all"]).splitlines()
    assert out == ["0", "-9", "['parent']", "True"]
