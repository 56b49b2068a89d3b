"""The ranges of a web request: of all of it, of each time it runs, and of its work in threads and tasks."""

from __future__ import annotations

from contextvars import ContextVar

from marey._marey import late_range, message_instant, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from typing import Any, ParamSpec, TypeVar

    from marey.recording.slow_requests import SlowRequests
    from marey.recording.web_requests import Names, Requests, Values

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

_FIRST_NAME = "request"  # of ranges until they end
_current: ContextVar[RequestRange] = ContextVar("marey request")  # tasks inherit it
_follows = False


async def _nothing() -> None: ...


_coroutine = _nothing()
_Coroutine: type = type(_coroutine)  # that of types, which takes long to import
_coroutine.close()


class RequestRange(parts):
    """One request, or a task of one: awaitable, and the ``send`` of an ASGI application.

    Its range is from its beginning to end(). Each time it runs is a range too, a part of one call.

    Args:
        requests: Those of the middleware.
        find: Returns the names of the request from `subject`: a framework may find the route while it runs.
        nests: Whether the range nests with the other ranges of this thread; otherwise it is async.
        values: Texts that the range gets at its end.
    """

    status = 0
    bytes = 0
    inner: Any = None  # what runs: a coroutine or another iterator
    ends_itself = False  # when its coroutine ends
    send_message: Any = None
    _range: late_range | None = None
    _token: Token[RequestRange] | None = None
    _has_begun = False
    _is_task = False
    _names: Names | None = None
    _slow: SlowRequests | None = None
    _requests: Requests

    def __init__(
        self, requests: Requests, find: Callable[[Any], Names], subject: Any, nests: bool, values: Values
    ) -> None:
        if not _follows:
            _follow_requests()
        self._slow = requests.slow
        self._start_ns = self._slow.begin() if self._slow is not None else 0
        self._requests = requests
        self._find = find
        self._subject = subject
        self._values = values
        self._range = late_range(nests, _FIRST_NAME)

    @property
    def name(self) -> str:
        """The method and the route."""
        return self.names().request

    def names(self) -> Names:
        if self._names is None or (self._subject is not None and not self.ends_itself):
            self._names = self._find(self._subject)
        return self._names

    @property
    def is_open(self) -> bool:
        return self._range is not None

    def end(self) -> None:
        """End the range of the request. Do nothing if it has ended."""
        ended, self._range = self._range, None
        if ended is not None:
            ended.end(self.names().request, {"status": self.status, "bytes": self.bytes, **self._values})
            if self.status >= 500:
                message_instant(f"exception HTTP {self.status}", self.name, "")
            if self._slow is not None:
                self._requests.end_slow(self._slow, self._start_ns, self.name, self._values)
            if not self.ends_itself:
                self._subject = None  # it may hold the request

    def call(self, app: Callable[..., Any], scope: Any, receive: Any, send: Any) -> RequestRange:
        """Call an ASGI application. Return this request, which awaits it and ends with it."""
        self.send_message, self.ends_itself = send, True
        try:
            return self.awaits(app(scope, receive, self))
        except BaseException:
            self.status = 500
            self.end()
            raise

    def awaits(self, awaitable: Any) -> RequestRange:
        """Return this request, which awaits the argument."""
        if type(awaitable) is _Coroutine:
            self.inner = awaitable
        elif (wait := getattr(type(awaitable), "__await__", None)) is not None:
            self.inner = wait(awaitable)
        else:
            raise TypeError(f"object {type(awaitable).__name__} can't be used in 'await' expression")
        return self

    def run(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a function as this request."""
        token = _current.set(self)
        try:
            return function(*args, **kwargs)
        finally:
            _reset(token)

    def __call__(self, message: Any) -> Any:
        """Pass an ASGI message on, and note the status and the size of the response."""
        try:
            kind, status = message["type"], None
            if kind == "http.response.body":
                self.bytes += len(message.get("body") or b"")
            elif kind == "http.response.start":
                status = message["status"]
            elif kind == "websocket.send":
                data = message.get("bytes")
                self.bytes += len(message.get("text") or "" if data is None else data)
            elif kind == "websocket.close":
                status = message.get("code", 1000)
            if isinstance(status, int) and status >= 0:
                self.status = status
        except Exception:  # it is not a message of ASGI
            pass
        return self.send_message(message)

    # ---- parts: called before and after each time that `inner` runs

    def begin_part(self) -> late_range:
        part = late_range(True, _FIRST_NAME)
        if part.is_open:
            if self._has_begun:
                part.begin_part(self)
            else:
                self._enter()
        return part

    def end_part(self, part: late_range, is_last: bool, error: type[BaseException] | None) -> None:
        """`error`: with which `inner` has ended."""
        if is_last and self._token is not None:
            token, self._token = self._token, None
            _reset(token)
        if part.is_open:
            is_first, self._has_begun = not self._has_begun, True
            self._names = names = self._find(self._subject) if self._subject is not None else self.names()
            part.end_part(self, names.task if self._is_task else names.part, is_first, is_last)
        if is_last and not self._is_task:  # the coroutine of a task can still be asked for
            self.inner = None
            if self.ends_itself:
                if self.status == 0 and error is not None and issubclass(error, Exception):
                    self.status = 500 if error is not StopIteration else 0
                self.end()

    def _enter(self) -> None:
        # A server may start the next request of a connection while this one answers, and so in a task of it. That
        # task is then one of the next request.
        task = _current.get(None)
        if task is not None and task._is_task and not self._is_task and task._subject is not self._subject:
            task._subject, task._find, task._names = self._subject, self._find, None
        self._token = _current.set(self)


class _Task(RequestRange):
    """A task of a request. Has the attributes of the program's coroutine: its frame, its name and what it awaits."""

    _is_task = True

    def __init__(self, request: RequestRange, coroutine: Any) -> None:
        self._find = request._find
        self._subject = request._subject
        self._values = {}
        self.inner = coroutine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _reset(token: Token[RequestRange]) -> None:
    try:
        _current.reset(token)
    except ValueError:  # it was set in another contextvars.Context, where the variable keeps its value
        pass


def _follow_requests() -> None:
    global _follows
    from marey.context.propagation import follow_requests

    _follows = True
    follow_requests(request_work, request_task)


def request_work(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function to be called on another thread: in a request, one whose calls are ranges of the request."""
    request = _current.get(None)
    if request is None:
        return function
    from functools import partial

    return partial(_work, request, function)


def _work(request: RequestRange, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    work = late_range(True, _FIRST_NAME)
    try:
        return request.run(function, *args, **kwargs)
    finally:
        if work.is_open:
            work.end(request.names().thread, {})


def request_task(coroutine: Any) -> Any:
    """Return a coroutine for a new task: in a request, one with ranges of the request."""
    request = _current.get(None)
    if request is None or request._subject is None or type(coroutine) is not _Coroutine:
        return coroutine
    return _Task(request, coroutine)
