"""Propagates the thread context to threads, executors, asyncio tasks, contextvars and processes.

Installed while at least one profiler runs (counted). The last removal restores the wrapped functions, unless other
code has wrapped them since: then the wrapper stays in place and only passes calls through.
"""

from __future__ import annotations

import contextvars
import functools
import sys
import threading

from marey import _marey
from marey._marey import Context
from marey._warnings import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from threading import Thread
    from typing import Any

    from marey._marey import Session
    from marey.context.processes import Followed

    Carried = tuple[Token[Context], Context, Session | None, Followed | None]  # of one `install`

_variable: contextvars.ContextVar[Context] = contextvars.ContextVar("marey context")
_lock = threading.RLock()
_installed = 0
_following = 0
_wrappers: list[tuple[type, str, Any, Any]] = []  # (owner, name, original, wrapper)


def install(session: Session | None = None) -> Carried | None:
    """Start to propagate contexts, on the thread that started `session`. Return a token for `remove`.

    A session with ``threads="tasks"`` is also followed into processes that multiprocessing starts.
    """
    global _installed, _following
    context = Context.current()
    token = None
    with _lock:
        processes = None if session is None or context.is_empty else _follow_processes()
        if _installed == 0:
            _wrap_all()
        _installed += 1
        if not context.is_empty:
            _following += 1
            _marey.follow(_variable)
            token = (_variable.set(context), context, session, processes)
    return token


def remove(token: Carried | None = None) -> None:
    """Undo one `install`, on any thread, before its session stops."""
    global _installed, _following
    with _lock:
        if token is not None:
            _following -= 1
            if _following == 0:
                _marey.follow(None)
            _forget(*token[:2])
        _installed -= 1
        if _installed == 0:
            _unwrap_all()
    _, _, session, followed = token or (None,) * 4
    if session is not None and followed is not None:
        from marey.context import processes

        processes.take_in(followed, session)


def _follow_processes() -> Followed | None:
    if "multiprocessing.process" not in sys.modules:
        return None
    from marey.context import processes

    try:
        return processes.follow(_marey.active_options())
    except OSError as error:
        warn(f"child processes are not recorded: {error}")
        return None


def follow_requests(work: Callable[[Any], Any], task: Callable[[Any], Any]) -> None:
    """Make the work that web requests do in tasks and threads ranges of these requests, until the process ends.

    `work` is called with each function that is handed to another thread, `task` with each coroutine of a new task; the
    results take their places.

    Wraps ``create_task`` of asyncio's and uvloop's event loops, ``ThreadPoolExecutor.submit``, which asyncio and
    asgiref use too, and ``anyio.to_thread.run_sync``.
    """
    _marey.hold_tracer()  # Marey's own calls are not recorded
    try:
        from concurrent.futures.thread import ThreadPoolExecutor

        pool: Any = ThreadPoolExecutor
        pool.submit = functools.wraps(pool.submit)(_make_request_submit(pool.submit, work))
        for module, name in (("asyncio.base_events", "BaseEventLoop"), ("uvloop", "Loop")):
            loop: Any = getattr(sys.modules.get(module), name, None)
            if loop is not None:
                loop.create_task = functools.wraps(loop.create_task)(_make_create_task(loop.create_task, task))
        to_thread: Any = sys.modules.get("anyio.to_thread")
        if to_thread is not None:
            to_thread.run_sync = functools.wraps(to_thread.run_sync)(_make_run_sync(to_thread.run_sync, work))
    finally:
        _marey.release_tracer()


def _make_request_submit(original: Any, work: Any) -> Callable[..., Any]:
    def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return original(self, work(fn), *args, **kwargs)

    return submit


def _make_create_task(original: Any, task: Any) -> Callable[..., Any]:
    def create_task(self: Any, coro: Any, **kwargs: Any) -> Any:
        return original(self, task(coro), **kwargs)

    return create_task


def _make_run_sync(original: Any, work: Any) -> Callable[..., Any]:
    async def run_sync(func: Any, *args: Any, **kwargs: Any) -> Any:
        return await original(work(func), *args, **kwargs)

    return run_sync


def _forget(token: Token[Context], context: Context) -> None:
    """Reset the variable if it still has the value that was set.

    Elsewhere it keeps its value, which has no effect because its session has stopped.
    """
    if _variable.get(None) is not context:
        return
    try:
        _variable.reset(token)
    except ValueError:  # it was set in another contextvars.Context
        _variable.set(Context())


def _replace(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    current = owner.__dict__[name]
    for entry in _wrappers:
        if entry[:2] == (owner, name) and _is_wrapped_by(entry[3], current):
            return  # other code has wrapped our wrapper, which is still called
    wrapper = functools.wraps(current)(make(current))
    setattr(owner, name, wrapper)
    _wrappers.append((owner, name, current, wrapper))


def _is_wrapped_by(wrapper: Any, current: Any) -> bool:
    """Return whether `current` is `wrapper`, or wraps it (``__wrapped__``)."""
    for _ in range(16):
        if current is wrapper:
            return True
        current = getattr(current, "__wrapped__", None)
    return False


def _wrap_all() -> None:
    from concurrent.futures.thread import ThreadPoolExecutor

    _replace(threading.Thread, "start", _make_start)
    _replace(threading.Thread, "_bootstrap_inner", _make_bootstrap)
    _replace(ThreadPoolExecutor, "submit", _make_submit)
    events = sys.modules.get("asyncio.events")
    if events is not None:  # if it is imported later, the context variable follows its tasks
        _replace(events.Handle, "_run", _make_run)
    torch = sys.modules.get("torch.futures")
    if torch is not None:
        _replace(torch.Future, "then", _make_callback)
        _replace(torch.Future, "add_done_callback", _make_callback)


def _unwrap_all() -> None:
    left = []
    for owner, name, original, wrapper in reversed(_wrappers):
        if owner.__dict__.get(name) is wrapper:
            setattr(owner, name, original)
        elif _is_wrapped_by(wrapper, owner.__dict__.get(name)):
            left.append((owner, name, original, wrapper))
    _wrappers[:] = reversed(left)


# A pool thread runs tasks of many submitters; each task brings its own context.
def _is_pool_thread(thread: Thread) -> bool:
    module = sys.modules.get("concurrent.futures.thread")
    return module is not None and getattr(thread, "_target", None) is getattr(module, "_worker", module)


def _make_start(original: Any) -> Callable[..., Any]:
    def start(self: Thread) -> Any:
        if _installed and not _is_pool_thread(self):
            context = Context.current()
            if not context.is_empty:
                self.__dict__["_marey_context"] = context
        return original(self)

    return start


def _make_bootstrap(original: Any) -> Callable[..., Any]:
    def _bootstrap_inner(self: Thread) -> Any:
        context = self.__dict__.pop("_marey_context", None)
        if context is not None:
            context.adopt()
        return original(self)

    return _bootstrap_inner


def _make_submit(original: Any) -> Callable[..., Any]:
    def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        if _installed:
            return original(self, Context.current().run, fn, *args, **kwargs)
        return original(self, fn, *args, **kwargs)

    return submit


def _make_run(original: Any) -> Callable[..., Any]:
    def _run(self: Any) -> Any:
        if _following and not _marey.is_recording():
            context = self._context.get(_variable)
            if context is not None:
                return context.run(original, self)
        return original(self)

    return _run


# For futures whose callbacks run on the thread that completes them.
def _make_callback(original: Any) -> Callable[..., Any]:
    def add(self: Any, callback: Callable[[Any], Any]) -> Any:
        context = Context.current()
        if context.is_empty:
            return original(self, callback)
        return original(self, lambda future: context.run(callback, future))

    return add
