"""asyncio tasks: their names, and when they ran and when they waited."""

import asyncio
import gc
import json
import threading

import pytest
from call_trees import name_of_code, short_name

import marey

EVERY_HOOK = pytest.mark.parametrize("c_calls", [False, True], ids=["python_calls", "c_calls"])


def profiled(main, **options):
    with marey.profile(with_stack=True, **options) as prof:
        asyncio.run(main())
    return prof


async def leaf(steps):
    for _ in range(steps):
        await asyncio.sleep(0)


async def work(steps):
    await leaf(steps)


async def two_workers():
    tasks = [asyncio.create_task(work(n), name=f"worker {n}") for n in (2, 3)]
    await asyncio.gather(*tasks)


def named(prof):
    return {task.name: task for task in prof.trace.tasks()}


@EVERY_HOOK
def test_a_task_has_its_name_its_coroutine_and_its_times(c_calls):
    tasks = named(profiled(two_workers, c_calls=c_calls))
    assert {"worker 2", "worker 3"} < set(tasks)
    task = tasks["worker 3"]
    assert short_name(task.coroutine) == name_of_code(work.__code__)
    assert task.steps == 4
    assert task.finished
    assert task.run_ns + task.await_ns == task.end_ns - task.start_ns
    assert task.run_ns > 0 and task.await_ns > 0
    assert task.threads == (threading.get_native_id(),)
    (main,) = [task for task in tasks.values() if short_name(task.coroutine) == name_of_code(two_workers.__code__)]
    assert main.name.startswith("Task-")


@EVERY_HOOK
def test_awaited_coroutines_belong_to_the_task(c_calls):
    calls = profiled(two_workers, c_calls=c_calls).trace.suspended_calls()
    of_leaf = [call for call in calls if short_name(call.name) == name_of_code(leaf.__code__)]
    assert sorted(call.task for call in of_leaf) == ["worker 2", "worker 3"]


@EVERY_HOOK
def test_a_coroutine_driven_by_the_program_is_not_a_task(c_calls):
    async def inner():
        return 1

    async def main():
        made = inner()
        with pytest.raises(StopIteration):
            made.send(None)

    prof = profiled(main, c_calls=c_calls)
    coroutines = {short_name(task.coroutine) for task in prof.trace.tasks()}
    assert name_of_code(main.__code__) in coroutines
    assert name_of_code(inner.__code__) not in coroutines


def test_coroutines_without_a_loop_are_not_tasks():
    async def alone():
        return 1

    with marey.profile(with_stack=True) as prof:
        with pytest.raises(StopIteration):
            alone().send(None)
    assert prof.trace.tasks() == []


@EVERY_HOOK
def test_a_task_started_before_the_session_is_recognized_when_it_resumes(c_calls):
    async def main():
        task = asyncio.create_task(work(4), name="early")
        await asyncio.sleep(0)
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            await task
        return prof

    tasks = named(asyncio.run(main()))
    assert tasks["early"].finished
    assert tasks["early"].steps in (3, 4)


@EVERY_HOOK
def test_a_task_of_a_misbehaving_class_is_recorded_without_side_effects(c_calls):
    class Rude(asyncio.Task):
        def get_name(self):
            raise RuntimeError("no name")

        def get_coro(self):
            raise RuntimeError("no coroutine")

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **options: Rude(coro, loop=loop, name="rude"))
        return await loop.create_task(leaf(1), name="rude")

    assert "rude" in named(profiled(main, c_calls=c_calls))


@EVERY_HOOK
def test_tasks_implemented_in_python_are_recognized_too(c_calls):
    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.tasks._PyTask(leaf(1), loop=loop, name="in python")

    tasks = named(profiled(main, c_calls=c_calls))
    if not hasattr(asyncio.tasks, "_py_enter_task"):
        assert "in python" in tasks


def test_a_cancelled_task_has_finished():
    async def main():
        task = asyncio.create_task(asyncio.sleep(10), name="sleeper")
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    assert named(profiled(main))["sleeper"].finished


def test_exports_show_a_track_for_each_task_and_read_back_the_same(tmp_path):
    prof = profiled(two_workers)
    wanted = prof.trace.tasks()
    for name in ("trace.json", "trace.pftrace"):
        prof.trace.export(tmp_path / name)
        back = marey.load(tmp_path / name)
        assert len(back) == len(prof.trace)
        assert [(task.name, task.number, task.steps) for task in back.tasks()] == [
            (task.name, task.number, task.steps) for task in wanted
        ]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert any("worker 2" in track for track in tracks)
    (life,) = [event for event in events if event["name"] == "worker 3" and event["ph"] in "Xb"]
    assert life["args"]["run"] == next(task.run_ns for task in wanted if task.name == "worker 3")
    prof.trace.save(tmp_path / "saved.marey")
    assert marey.load(tmp_path / "saved.marey").tasks() == wanted


def test_totals_do_not_include_tasks():
    prof = profiled(two_workers)
    rows = {row.key: row for row in prof.key_averages()}
    assert not any(key.startswith(("worker", "Task-")) for key in rows)


@EVERY_HOOK
def test_thousands_of_live_tasks_are_kept_apart(c_calls):
    async def main():
        await asyncio.gather(*(work(1) for _ in range(3000)))

    gc.collect()
    prof = profiled(main, c_calls=c_calls)
    tasks = [task for task in prof.trace.tasks() if short_name(task.coroutine) == name_of_code(work.__code__)]
    assert len(tasks) == 3000
    assert {task.steps for task in tasks} == {2}
    assert len({task.name for task in tasks}) == 3000


def test_program_code_that_runs_while_tasks_are_looked_up_may_end_tracing():
    class Loop(asyncio.SelectorEventLoop):
        left = 0

        def __hash__(self):  # the running task is found by its loop
            self.left -= 1
            if self.left == 0:
                prof.stop()
            return 1

    async def main():
        await asyncio.sleep(0)
        return 5

    for hashed in range(1, 12):
        loop = Loop()
        prof = marey.profile(with_stack=True, c_calls=False)
        prof.start()
        loop.left = hashed
        try:
            assert loop.run_until_complete(main()) == 5
        finally:
            if loop.left > 0:
                prof.stop()
            loop.left = 0
            loop.close()
