"""Web requests as ranges: a middleware for ASGI and WSGI applications, and one for Django.

    app = MareyMiddleware(app)                # into the session that is running: `marey run`, marey.profile
    app = MareyMiddleware(app, secret="...")  # ?marey=SECRET, or the header X-Marey, returns a report of the request
    app = MareyMiddleware(app, over="500ms", folder="slow")  # keep the calls of slow requests

No framework is imported. Names of ranges are routes, never URLs; headers and query parameters are recorded if they are
named, bodies never.
"""

from __future__ import annotations

import sys

from marey import _marey
from marey.recording.request_ranges import RequestRange
from marey.recording.web_requests import BUSY, REPORT_HEADER, Requests, page_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal

    from marey.recording.web_requests import Report, Values

__all__ = ["DjangoMiddleware", "MareyMiddleware", "flask_app", "starlette_app"]

_is_recording = _marey.is_recording
_NO_VALUES: Values = {}


class MareyMiddleware:
    """Record the requests of an ASGI or WSGI application as ranges, named by method and route.

    Without further options, requests are recorded while a session runs, and cost next to nothing otherwise. Errors of
    the recording never affect a request.

    Args:
        app: The application. Of a coroutine function, or an object whose ``__call__`` is one, it is ASGI.
        interface: "asgi" or "wsgi", if that cannot be found out from `app`.

    Keyword Args:
        secret (str): A request with ``?marey=SECRET`` or the header ``X-Marey: SECRET`` is answered with a report of
            itself. At least 8 characters.
        debug (bool): ``?marey=1`` is enough for a report. For development only: anybody can ask for it.
        over (str | float): Keep the calls of requests that take longer than this: "500ms", or a number of seconds.
        slowest (int): Keep the calls of this many requests, the slowest ones.
        folder (str): Where these are written, as captures.
        max_bytes (int): The memory for the calls that are recorded to find slow requests.
        route (Callable): A function from the ASGI scope or WSGI environ of a finished request to its route, for
            frameworks that do not store it there. None: unknown.
        record (Iterable[str]): Values to record: "header:NAME", "query:NAME", or "traceparent", which joins the request
            with its distributed trace.
    """

    _find: Callable[[Any], tuple[str, str | None]]  # returns the method and the route of a request

    def __new__(cls, app: Any, interface: Literal["asgi", "wsgi"] | None = None, **options: Any) -> MareyMiddleware:
        if not callable(app):
            raise TypeError(f"app must be an ASGI or WSGI application, not {app!r}")
        if interface not in (None, "asgi", "wsgi"):
            raise ValueError(f"interface must be 'asgi' or 'wsgi', not {interface!r}")
        if cls is MareyMiddleware:
            cls = _Asgi if interface == "asgi" or (interface is None and _is_async(app)) else _Wsgi
        return object.__new__(cls)

    def __init__(self, app: Any, interface: Literal["asgi", "wsgi"] | None = None, **options: Any) -> None:
        self._app = app
        self._requests = _requests_with(options)
        self._is_plain = self._requests.is_plain
        self._has_options = not self._is_plain or bool(self._requests.recorded)
        self._names = self._requests.finder(self._find)


def _requests_with(options: dict[str, Any]) -> Requests:
    """Return the requests of a middleware with these options. Raise TypeError or ValueError if one is wrong.

    Starlette and FastAPI create their middleware with the first request: an error would fail that one and all later
    ones. There it is a warning, and requests are only recorded.
    """
    try:
        return Requests(**options)
    except (TypeError, ValueError) as error:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        if frame.f_code.co_name != "build_middleware_stack":
            raise
        from marey._warnings import warn

        warn(f"MareyMiddleware: {error}; requests give no reports and are not kept")
        return Requests()


def _is_async(app: Any) -> bool:
    """Return whether calling `app` gives a coroutine. (inspect has this function too, but takes long to import.)"""
    while hasattr(app, "func"):  # functools.partial
        app = app.func
    for function in (app, getattr(type(app), "__call__", None)):  # noqa: B004
        function = getattr(function, "__func__", function)
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & 0x80:
            return True
    return getattr(app, "_is_coroutine_marker", None) is not None


# ---- ASGI


async def _discard(message: dict[str, Any]) -> None:
    """Take a message of a response that nobody gets."""


class _Asgi(MareyMiddleware):
    """The middleware for ASGI applications."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if self._is_plain and not _is_recording():
            await self._app(scope, receive, send)
        elif (kind := scope["type"]) != "http" and kind != "websocket":
            await self._app(scope, receive, send)
        elif not self._has_options:
            await self._request(scope).call(self._app, scope, receive, send)
        elif kind == "http" and (report := self._requests.begin_report(lambda: self._asked(scope))) is not None:
            await self._send_report(report, scope, receive, send)
        else:
            await self._request(scope, self._values(scope)).call(self._app, scope, receive, send)

    def _request(self, scope: dict[str, Any], values: Values = _NO_VALUES) -> RequestRange:
        return RequestRange(self._requests, self._names, scope, False, values)

    def _values(self, scope: dict[str, Any]) -> Values:
        def header(name: str) -> str | None:
            found = [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name.encode()]
            return ", ".join(found) if found else None

        return self._requests.values(header, scope.get("query_string", b"").decode("latin-1"), scope)

    def _find(self, scope: dict[str, Any]) -> tuple[str, str | None]:
        """Return the method and the route, as Starlette or FastAPI has found it."""
        own = self._requests.route
        route = own(scope) if own is not None else None
        if route is None:
            route = getattr(scope.get("route"), "path", None)
        if route is None and (found := scope.get("endpoint")) is not None:
            route = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', found)}"
        return scope.get("method") or "WEBSOCKET", route

    @staticmethod
    def _asked(scope: dict[str, Any]) -> tuple[str, str | None]:
        header = next((value for name, value in scope["headers"] if name.lower() == REPORT_HEADER.encode()), None)
        return scope.get("query_string", b"").decode("latin-1"), header.decode(
            "latin-1"
        ) if header is not None else None

    async def _send_report(
        self, report: Report | Literal[False], scope: dict[str, Any], receive: Any, send: Any
    ) -> None:
        if not report:
            await self._answer(send, 503, BUSY, "text/plain")
            return
        try:
            request = self._request(scope)
            await request.call(self._app, scope, receive, _discard)
            await self._answer(send, 200, await _in_thread(report.page, f"{request.name}: {request.status}"))
        finally:
            report.discard()

    @staticmethod
    async def _answer(send: Any, status: int, page: bytes, kind: str = "text/html") -> None:
        headers = [(name.encode(), value.encode()) for name, value in page_headers(page, kind)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": page})


async def _in_thread(function: Callable[[str], bytes], argument: str) -> bytes:
    """Call a function that takes long, outside of asyncio's event loop; with another library, right here."""
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return function(argument)
    return await loop.run_in_executor(None, function, argument)


# ---- WSGI

_WSGI_HEADER = "HTTP_" + REPORT_HEADER.upper().replace("-", "_")


class _Wsgi(MareyMiddleware):
    """The middleware for WSGI applications."""

    def _find(self, request: _WsgiRequest) -> tuple[str, str | None]:
        return request.find()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if self._is_plain and not _is_recording():
            body: Iterable[bytes] = self._app(environ, start_response)
            return body
        report = self._requests.begin_report(lambda: (environ.get("QUERY_STRING", ""), environ.get(_WSGI_HEADER)))
        if report is not None:
            return self._report(report, environ, start_response)
        return _WsgiRequest(self, environ, start_response).respond(self._app)

    def _report(self, report: Report | Literal[False], environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not report:
            start_response("503 Service Unavailable", page_headers(BUSY, "text/plain"))
            return [BUSY]
        try:
            request = _WsgiRequest(self, environ, None)
            response = request.respond(self._app)
            try:
                for _ in response:  # the response itself is discarded
                    pass
            finally:
                getattr(response, "close", lambda: None)()
            page = report.page(f"{request.name}: {request.status}")
        finally:
            report.discard()
        start_response("200 OK", page_headers(page))
        return [page]


def _values_of(requests: Requests, environ: dict[str, Any], scope: dict[str, Any]) -> Values:
    """Return what is recorded of a request with this WSGI environ."""

    def header(name: str) -> str | None:
        name = name.upper().replace("-", "_")
        found: str | None = environ.get(name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}")
        return found

    return requests.values(header, environ.get("QUERY_STRING", ""), scope)


def _content_length(headers: Any) -> float:
    """Return the length that a response announces; infinity if it does not."""
    try:
        return next(int(text) for name, text in headers if name.lower() == "content-length")
    except (StopIteration, TypeError, ValueError, AttributeError):
        return float("inf")


class _WsgiRequest(RequestRange):
    """One request. Its range ends when the application has handed over the whole response, or gives it up.

    Servers close a response at the end, but test clients may not: the last byte of one with a ``Content-Length``, or
    the end of the iterator, is the end of the request too.
    """

    def __init__(self, middleware: _Wsgi, environ: dict[str, Any], start_response: Any) -> None:
        requests = middleware._requests
        self._environ = environ
        self._start_response = start_response
        self._flask_rule: Any = None
        self._length = float("inf")  # of the whole body, if it is known
        values = _values_of(requests, environ, environ) if requests.recorded else _NO_VALUES
        super().__init__(requests, middleware._names, self, True, values)

    def respond(self, app: Any) -> Iterable[bytes]:
        try:
            body = self.run(app, self._environ, self._start)
        except BaseException:
            self.status = self.status or 500
            self.end()
            raise
        if type(body) in (list, tuple):
            self.bytes += sum(map(len, body))
            self.end()
            return body  # type: ignore[no-any-return]
        return _WsgiBody(self, body)

    def _start(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        self.status = int(status[:3]) if status[:3].isdecimal() else 0
        self._length = _content_length(headers)
        self._flask_rule = self._find_flask_rule()
        if self._start_response is None:
            return self._write
        write = self._start_response(status, headers, *(() if exc_info is None else (exc_info,)))

        def counted(data: bytes) -> Any:
            self._write(data)
            return write(data)

        return counted

    def _write(self, data: bytes) -> None:
        self.bytes += len(data)

    def add(self, data: bytes) -> None:
        """Count a part of the body."""
        self.bytes += len(data)
        if self.bytes >= self._length:
            self.end()

    def find(self) -> tuple[str, str | None]:
        """Return the method and the route."""
        own = self._requests.route
        route = own(self._environ) if own is not None else None
        if route is None:
            route = getattr(self._flask_rule or self._find_flask_rule(), "rule", None)
        return self._environ.get("REQUEST_METHOD", ""), route

    def _find_flask_rule(self) -> Any:
        """Return the rule that Flask has found. It forgets the request before the response is closed."""
        return getattr(self._environ.get("werkzeug.request"), "url_rule", None)


class _WsgiBody:
    """The body of a response: what the server reads and closes, or drops."""

    __slots__ = ("_body", "_request")

    def __init__(self, request: _WsgiRequest, body: Iterable[bytes]) -> None:
        self._request = request
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        try:
            for data in self._body:
                self._request.add(data)
                yield data
        finally:
            self._request.end()

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._request.end()

    def __del__(self) -> None:
        self._request.end()


# ---- frameworks


def flask_app(app: Any, **options: Any) -> Any:
    """Add the middleware to a Flask application, and return the application."""
    app.wsgi_app = MareyMiddleware(app.wsgi_app, **options)
    return app


def starlette_app(app: Any, **options: Any) -> Any:
    """Add the middleware to a Starlette or FastAPI application, and return the application.

    Raise TypeError or ValueError if an option is wrong; ``app.add_middleware`` does not look at them.
    """
    Requests(**{name: option for name, option in options.items() if name != "interface"})
    app.add_middleware(MareyMiddleware, **options)
    return app


class DjangoMiddleware:
    """Record the requests of a Django project: put "marey.web.DjangoMiddleware" first in ``MIDDLEWARE``.

    Works in synchronous and asynchronous projects. The setting ``MAREY`` is a dict of options of MareyMiddleware.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        from asgiref.sync import iscoroutinefunction, markcoroutinefunction
        from django.conf import settings

        self._get_response = get_response
        self._requests = Requests(**getattr(settings, "MAREY", {}))
        self._names = self._requests.finder(self._find)
        self._is_async = bool(iscoroutinefunction(get_response))
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        if self._is_async:
            return self._call_async(request)
        recorded = _DjangoRequest(self, request)
        if recorded.report is False:
            return self._page(BUSY, 503, "text/plain")
        try:
            recorded.response = recorded.run(self._get_response, request)
        finally:
            recorded.finish()
        return self._page(recorded.report.page(recorded.name)) if recorded.report else recorded.response

    async def _call_async(self, request: Any) -> Any:
        recorded = _DjangoRequest(self, request)
        if recorded.report is False:
            return self._page(BUSY, 503, "text/plain")
        try:
            recorded.response = await recorded.awaits(self._get_response(request))
        finally:
            recorded.finish()
        if recorded.report:
            return self._page(await _in_thread(recorded.report.page, recorded.name))
        return recorded.response

    def _find(self, request: Any) -> tuple[str, str | None]:
        """Return the method and the route."""
        route = getattr(getattr(request, "resolver_match", None), "route", None)
        return request.method or "", f"/{route}" if route is not None else None

    @staticmethod
    def _page(page: bytes, status: int = 200, kind: str = "text/html") -> Any:
        from django.http import HttpResponse

        return HttpResponse(page, status=status, headers=dict(page_headers(page, kind)))


class _DjangoRequest(RequestRange):
    """One request of a Django project."""

    response: Any = None

    def __init__(self, middleware: DjangoMiddleware, request: Any) -> None:
        requests = middleware._requests
        meta = request.META
        self.report = requests.begin_report(lambda: (meta.get("QUERY_STRING", ""), request.headers.get(REPORT_HEADER)))
        if self.report is False:
            return
        values = _values_of(requests, meta, meta) if requests.recorded else {}
        super().__init__(requests, middleware._names, request, not middleware._is_async, values)

    def finish(self) -> None:
        """End the range with the facts of the response; without one, the view has failed."""
        response = self.response
        try:
            self.status = 500 if response is None else response.status_code
            self.bytes = 0 if response is None or response.streaming else len(response.content)
        except Exception as error:
            self._requests.fault(error)
        self.end()
        if response is None and self.report:
            self.report.discard()
