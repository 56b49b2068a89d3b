"""Sessions with threads="tasks" follow PyTorch's work across threads and record nothing else."""

import threading

import pytest
import torch

import marey
from marey.torch import profile, record_function


def names(prof):
    return [event.name for event in prof.events()]


def test_an_unrelated_thread_is_not_recorded():
    """upstream: test_source_multithreaded, test_without_enable_profiler_in_child_thread_cuda"""
    go, done = threading.Event(), threading.Event()

    def work():
        go.wait()
        torch.zeros(5)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with profile(threads="tasks", profile_memory=True) as prof:
        go.set()
        done.wait()
        torch.ones(5)
    thread.join()
    assert "aten::ones" in names(prof) and "aten::zeros" not in names(prof)


def test_the_backward_pass_is_followed_into_engine_threads():
    """(T9)"""

    class Reentrant(torch.autograd.Function):
        """A backward pass inside another; if nested deeply enough, it runs on a thread of the engine's pool."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                torch.sigmoid(inner).sum().backward()
            return grad

    x = torch.randn(3, requires_grad=True)
    with profile(threads="tasks") as prof:
        Reentrant.apply(x).sum().backward()
    assert "SigmoidBackward0" in names(prof) and "aten::sigmoid_backward" in names(prof)


def test_forked_tasks_are_followed_and_counted_once():
    """upstream: test_profiler_propagation (T7 T9)"""

    @torch.jit.script
    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

    @torch.jit.script
    def outer(x: torch.Tensor) -> torch.Tensor:
        future = torch.jit.fork(inner, x)
        y = torch.sigmoid(x)
        return torch.jit.wait(future) + y

    x = torch.ones(4)
    outer(x), outer(x), outer(x)  # compile the function first
    with profile(threads="tasks", profile_memory=True) as prof:
        with record_function("around"):
            outer(x)
    found = names(prof)
    assert found.count("aten::tanh") == 1 and found.count("aten::sigmoid") == 1 and found.count("around") == 1
    (tanh,) = [event for event in prof.events() if event.name == "aten::tanh"]
    assert tanh.cpu_memory_usage == 16


@pytest.mark.parametrize("options", ({}, {"with_stack": True}, {"record_shapes": True, "threads": "tasks"}))
def test_a_function_that_waits_for_forks_keeps_its_work_on_the_calling_thread(options):
    """Another thread resumes the function and ends its range after the caller has continued."""

    @torch.jit.script
    def inner(x: torch.Tensor) -> torch.Tensor:
        for _ in range(20):
            x = torch.tanh(x)
        return x

    @torch.jit.script
    def outer(x: torch.Tensor) -> torch.Tensor:
        future = torch.jit.fork(inner, x)
        y = torch.sigmoid(x)
        return torch.cos(torch.jit.wait(future)) + y

    x = torch.ones(20000)
    outer(x), outer(x), outer(x)  # compile the function first
    with profile(profile_memory=True, **options) as prof:
        for _ in range(10):
            with record_function("around"):
                outer(x)
    events = prof.events()
    for name, parent in (("around", None), ("outer", "around"), ("aten::sigmoid", "outer")):
        found = [event for event in events if event.name == name]
        assert len(found) == 10 and not any(event.is_async for event in found)
        if parent is not None:
            assert {name_around(event) for event in found} == {parent}
    assert [event.name for event in events].count("aten::tanh") == 200
    for event in events:
        if event.name == "outer":
            assert event.cpu_memory_usage == event.self_cpu_memory_usage + sum(
                child.cpu_memory_usage for child in event.cpu_children
            )
            assert any(
                child.name == "aten::sigmoid" and child.cpu_memory_usage == 80000 for child in event.cpu_children
            )


def name_around(event):
    """The name of the nearest enclosing range that is not a Python call."""
    around = event.cpu_parent
    while around is not None and (".py(" in around.name or around.name.startswith(("torch._C", "<", "nn.Module"))):
        around = around.cpu_parent
    return around and around.name


def test_future_callbacks_are_followed():
    future = torch.futures.Future()

    def settle():
        torch.zeros(2)  # not part of the session
        future.set_result(1)

    with profile(threads="tasks") as prof:
        after = future.then(lambda done: torch.ones(2))
        thread = marey_free_thread(settle)
        thread.join()
        after.wait()
    assert "aten::ones" in names(prof) and "aten::zeros" not in names(prof)


def marey_free_thread(target):
    """A thread that no session follows, because it was started before the session."""
    _requests.append(target)
    _wake.release()
    return _Joined()


class _Joined:
    def join(self):
        _served.acquire()


_requests, _wake, _served = [], threading.Semaphore(0), threading.Semaphore(0)


def _serve():
    while True:
        _wake.acquire()
        _requests.pop()()
        _served.release()


threading.Thread(target=_serve, daemon=True).start()


def test_sessions_on_two_threads_each_record_their_own_work():
    profiles = {}

    def work(name, operator):
        with profile(threads="tasks") as prof:
            for _ in range(20):
                operator(torch.ones(2, requires_grad=True)).sum().backward()
        profiles[name] = prof

    threads = [
        threading.Thread(target=work, args=("sigmoid", torch.sigmoid)),
        threading.Thread(target=work, args=("tanh", torch.tanh)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, other in (("sigmoid", "tanh"), ("tanh", "sigmoid")):
        found = names(profiles[name])
        assert found.count(f"aten::{name}") == 20 and f"aten::{other}" not in found


def test_a_session_works_after_another_has_stopped():
    with profile(threads="tasks"):
        pass
    with marey.profile(threads="tasks") as prof:
        torch.ones(1)
    assert "aten::ones" in names(prof)
