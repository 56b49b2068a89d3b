"""Ranges that end when a future is done."""

from __future__ import annotations

import contextvars
import functools
import sys

from marey._marey import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def check(future: Any) -> None:
    """Raise TypeError if `future` is not a future."""
    if not callable(getattr(future, "add_done_callback", None)):
        given = type(future).__name__
        raise TypeError(f"end_on_future: expected a future (an object with add_done_callback), got {given}")


def end_on_future(range_: Any, future: Any) -> Any:
    """Return a future with the outcome of `future` that completes after `range_` has ended.

    It owns the range. For an asyncio future, the result belongs to the same loop; for a torch future, it is a torch
    future; otherwise it is a concurrent.futures.Future. Observers of the range and callbacks of the returned future
    run in the caller's context: its contextvars and its Marey context.
    """
    settle: Callable[[Any, Any], None]
    if _is_torch(future):
        target, settle = type(future)(), _settle_torch
    elif _is_asyncio(future):
        target, settle = _make_asyncio(future)
    else:
        target, settle = _make_concurrent(future)
    values, context = contextvars.copy_context(), Context.current()

    def finish(*_: object) -> None:
        range_.end()
        settle(target, future)

    def done(*_: object) -> None:
        values.run(context.run, finish)

    if _is_asyncio(future) and future.done():
        done()
        return target
    try:
        future.add_done_callback(done)
    except BaseException:
        range_.end()
        raise
    return target


def _is_torch(future: Any) -> bool:
    torch = sys.modules.get("torch._C")
    return torch is not None and isinstance(future, torch.Future)


def _settle_torch(target: Any, source: Any) -> None:
    try:
        value = source.value()
    except Exception as error:
        target.set_exception(error)
    else:
        target.set_result(value)


def _is_asyncio(future: Any) -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio.isfuture(future)


def _make_asyncio(source: Any) -> tuple[Any, Callable[[Any, Any], None]]:
    target = source.get_loop().create_future()

    def cancel_source(target: Any) -> None:
        if target.cancelled() and not source.done():
            source.cancel()

    target.add_done_callback(cancel_source)
    return target, _settle_asyncio


def _settle_asyncio(target: Any, source: Any) -> None:
    if target.done():  # it was cancelled by its owner
        if not source.cancelled():
            source.exception()  # marks the exception as retrieved
    elif source.cancelled():
        target.cancel(*_cancel_message(source))
    elif source.exception() is not None:
        target.set_exception(source.exception())
    else:
        target.set_result(source.result())


def _cancel_message(source: Any) -> tuple[Any, ...]:
    message = getattr(source, "_cancel_message", None)
    return () if message is None else (message,)


@functools.cache
def _future_type() -> Any:
    from concurrent.futures import Future

    class RangeFuture(Future["Any"]):
        """Follows another future: cancelling this one cancels that one."""

        source: Any

        def cancel(self) -> bool:
            if self.done():
                return self.cancelled()
            return bool(_call(self.source, "cancel"))

        def running(self) -> bool:
            if self.done():
                return False
            running = getattr(self.source, "running", None)
            return running is None or bool(running())

        def be_cancelled(self) -> None:
            super().cancel()
            self.set_running_or_notify_cancel()

    return RangeFuture


def _make_concurrent(source: Any) -> tuple[Any, Callable[[Any, Any], None]]:
    target = _future_type()()
    target.source = source
    return target, _settle_concurrent


def _settle_concurrent(target: Any, source: Any) -> None:
    from concurrent.futures import CancelledError

    if target.done():
        return
    try:
        if _call(source, "cancelled"):
            raise CancelledError
        error = _call(source, "exception")
        outcome = None if error is not None else _call(source, "result", "value", "wait")
    except CancelledError:
        target.be_cancelled()
        return
    except BaseException as exception:  # the outcome of the future, passed on unchanged
        error = exception
    if error is not None:
        target.set_exception(error)
    else:
        target.set_result(outcome)


def _call(source: Any, *names: str) -> Any:
    """Call the first of these methods that exists and return its result; None if none exists."""
    for name in names:
        method = getattr(source, name, None)
        if callable(method):
            return method()
    return None
