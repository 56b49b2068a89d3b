"""Decorates functions that can suspend: generators, coroutines and async generators."""

from __future__ import annotations

import functools
import types

from marey._marey import async_range, begin_part, end_part, parts, record_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

    _Function = Callable[..., Any]

GENERATOR = 0x20
COROUTINE = 0x80
ITERABLE_COROUTINE = 0x100
ASYNC_GENERATOR = 0x200


def wrap(function: _Function, name: str, args: str | None, stack: bool | str = False) -> _Function | None:
    """Return a function that marks the calls of one that can suspend; None if it needs no such wrapper.

    Any function is wrapped if its range has a text (`args`) or a stack.

    Each stretch of running is a range called `name` on the thread that runs it: their sum is the running time. They are
    the parts of one call. The whole life, from the first stretch to the end, is an async range called `name (life)`:
    the part that no stretch covers is the time spent suspended.
    """
    inner = function
    while type(inner) is functools.partial:
        inner = inner.func
    flags = getattr(getattr(inner, "__code__", None), "co_flags", 0)
    if flags & ASYNC_GENERATOR:
        wrapper = _wrap_async_generator(function, name, args, stack)
    elif flags & COROUTINE:
        wrapper = _wrap_coroutine(function, name, args, stack)
    elif flags & GENERATOR:
        wrapper = _wrap_generator(function, name, args, stack)
        if flags & ITERABLE_COROUTINE:
            wrapper = types.coroutine(wrapper)
    elif args is not None or stack:
        wrapper = _wrap_plain(function, name, args, stack)
    else:
        return None
    return functools.update_wrapper(wrapper, function)


@functools.lru_cache(maxsize=256)
def _life_name(name: str) -> str:
    return name + " (life)"


class _SuspendableRange:
    """The life of one generator or coroutine: makes a range for each stretch of running."""

    __slots__ = ("_name", "_args", "_stack", "_whole", "_has_begun")

    def __init__(self, name: str, args: str | None, stack: bool | str) -> None:
        self._name = name
        self._args = args
        self._stack = stack
        self._whole = async_range(_life_name(name))
        self._has_begun = False

    def end(self) -> None:
        self._whole.end()

    def begin_stretch(self) -> record_function:
        stretch = record_function(self._name, self._args, stack=self._stack)
        stretch.__enter__()
        begin_part(self, stretch, not self._has_begun)
        self._has_begun = True
        return stretch


class _Steps(parts):
    """Forwards every resume to a generator, or to an awaitable's ``__await__()``, as one stretch each.

    `pauses`: the call goes on when `inner` returns.
    """

    __slots__ = ("_life", "_pauses", "inner")

    def __init__(self, life: _SuspendableRange, inner: Any, pauses: bool = False) -> None:
        self._life = life
        self._pauses = pauses
        self.inner = inner

    def begin_part(self) -> record_function:
        return self._life.begin_stretch()

    def end_part(self, stretch: record_function, is_last: bool, error: type[BaseException] | None) -> None:
        is_pause = self._pauses and (error is None or error is StopIteration)
        end_part(self._life, stretch, is_last and not is_pause)


def _wrap_generator(function: _Function, name: str, args: str | None, stack: bool | str) -> _Function:
    def generator(*positional: Any, **keywords: Any) -> Generator[Any, Any, Any]:
        life = _SuspendableRange(name, args, stack)
        try:
            return (yield from _Steps(life, function(*positional, **keywords)))
        finally:
            life.end()

    return generator


def _wrap_coroutine(function: _Function, name: str, args: str | None, stack: bool | str) -> _Function:
    async def coroutine(*positional: Any, **keywords: Any) -> Any:
        life = _SuspendableRange(name, args, stack)
        try:
            return await _Steps(life, function(*positional, **keywords).__await__())
        finally:
            life.end()

    return coroutine


def _wrap_async_generator(function: _Function, name: str, args: str | None, stack: bool | str) -> _Function:
    async def async_generator(*positional: Any, **keywords: Any) -> AsyncGenerator[Any, Any]:
        life = _SuspendableRange(name, args, stack)

        def step(awaitable: Any) -> _Steps:
            return _Steps(life, awaitable.__await__(), pauses=True)

        inner = function(*positional, **keywords)
        try:
            item = await step(inner.__anext__())
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    await step(inner.aclose())
                    raise
                except BaseException as exception:  # thrown in by the consumer
                    item = await step(inner.athrow(exception))
                else:
                    item = await step(inner.asend(sent))
        except StopAsyncIteration:
            return
        finally:
            life.end()

    return async_generator


def _wrap_plain(function: _Function, name: str, args: str | None, stack: bool | str) -> _Function:
    def plain(*positional: Any, **keywords: Any) -> Any:
        with record_function(name, args, stack=stack):
            return function(*positional, **keywords)

    return plain


def wrap_in_block(function: _Function, block: Any) -> _Function:
    """Return a function whose calls enter and leave `block`, a range class with its own enter and exit."""
    if not callable(function):
        raise TypeError(f"record_function can only decorate callables, not {type(function).__name__}")
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & ASYNC_GENERATOR:
        raise TypeError(f"a {type(block).__name__} cannot decorate an async generator")

    async def coroutine(*positional: Any, **keywords: Any) -> Any:
        with block:
            return await function(*positional, **keywords)

    def generator(*positional: Any, **keywords: Any) -> Generator[Any, Any, Any]:
        with block:
            return (yield from function(*positional, **keywords))

    def plain(*positional: Any, **keywords: Any) -> Any:
        with block:
            return function(*positional, **keywords)

    wrapper: _Function = coroutine if flags & COROUTINE else generator if flags & GENERATOR else plain
    return functools.update_wrapper(wrapper, function)
