"""Web requests as ranges: a middleware for ASGI and WSGI applications, and one for Django.

    app = MareyMiddleware(app)                # into the session that is running: `marey run`, marey.profile
    app = MareyMiddleware(app, secret="...")  # ?marey=SECRET, or the header X-Marey, returns a report of the request
    app = MareyMiddleware(app, over="500ms", folder="slow")  # keep the calls of slow requests

No framework is imported. Names of ranges are routes, never URLs; query strings, headers and bodies are not recorded.
"""

from __future__ import annotations

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal

    from marey.recording.slow_requests import SlowRequests

    Route = Callable[[dict[str, Any]], "str | None"]

__all__ = ["DjangoMiddleware", "MareyMiddleware", "flask_app"]

MAX_ROUTES = 1000
_METHODS = frozenset("GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH QUERY WEBSOCKET".split())
_PARAMETER = "marey"
_HEADER = "x-marey"
_OTHER_ROUTES = "(other routes)"
_NO_ROUTE = "(no route)"

_is_recording = _marey.is_recording
_late_range = _marey.late_range


class _Requests:
    """Names requests, and decides which get a report or are kept. Shared by the threads of a server."""

    def __init__(
        self,
        secret: str | None = None,
        debug: bool = False,
        over: str | float | None = None,
        slowest: int = 0,
        folder: str | None = None,
        max_bytes: int = 64 << 20,
        route: Route | None = None,
    ) -> None:
        if secret is not None and (not isinstance(secret, str) or len(secret) < 8):
            raise ValueError("secret must be a text of at least 8 characters")
        if (over is not None or slowest) and not folder:
            raise ValueError("over and slowest need folder, where slow requests are kept")
        if folder and over is None and not slowest:
            raise ValueError("folder needs over (such as '500ms') or slowest (a number of requests)")
        if route is not None and not callable(route):
            raise TypeError(f"route must be a callable, not {route!r}")
        self._secret = secret
        self._debug = bool(debug)
        self.route = route  # the user's function, or None
        self._names: dict[tuple[str, str], str] = {}
        self._has_faults = False
        self._reports = _ReportLock()
        self.slow: SlowRequests | None = None
        if folder:
            from marey.recording.slow_requests import SlowRequests

            self.slow = SlowRequests(folder, over, slowest, max_bytes)
        self.gives_reports = debug or secret is not None
        self.is_plain = not self.gives_reports and self.slow is None  # it only records into other sessions

    def name(self, method: str, route: str | None) -> str:
        """Return the name of a request: its method and route."""
        key = (method, route or _NO_ROUTE)
        known = self._names.get(key)
        if known is not None:
            return known
        if method not in _METHODS:
            key = ("OTHER", key[1])
        if len(self._names) >= MAX_ROUTES:
            if not self._has_warned():
                from marey._warnings import warn

                warn(f"more than {MAX_ROUTES} routes: further ones are recorded as {_OTHER_ROUTES}")
                _marey.instant(f"marey: more than {MAX_ROUTES} routes")
            return f"{key[0]} {_OTHER_ROUTES}"
        from marey._text import printable

        name = self._names[key] = printable(f"{key[0]} {key[1]}"[:200])
        return name

    def _has_warned(self) -> bool:
        warned = ("", "") in self._names
        self._names.setdefault(("", ""), "")
        return warned

    def asks_for_report(self, query: str, header: str | None) -> bool:
        """Return whether a request is allowed to get its report, and asks for it."""
        given = header
        if given is None:
            if _PARAMETER not in query:
                return False
            from urllib.parse import parse_qs

            given = parse_qs(query, max_num_fields=1000).get(_PARAMETER, [""])[-1]
        if not given:
            return False
        if self._debug and given == "1":
            return True
        if self._secret is None:
            return False
        from hmac import compare_digest

        return compare_digest(given.encode("utf-8", "replace"), self._secret.encode())

    def begin_report(self) -> _Report | None:
        """Start to record a request with its calls; None if another one is being recorded."""
        return _Report(self._reports) if self._reports.take() else None

    def fault(self, error: BaseException) -> None:
        """Report an error of this module, once. The request goes on."""
        if not self._has_faults:
            self._has_faults = True
            from marey._warnings import warn

            warn(f"a request could not be recorded: {type(error).__name__}: {error}")


class _ReportLock:
    """At most one report at a time in a process: each records every thread."""

    def __init__(self) -> None:
        from threading import Lock

        self._lock = Lock()

    def take(self) -> bool:
        return self._lock.acquire(blocking=False)

    def give_back(self) -> None:
        self._lock.release()


class _Report:
    """Records one request with the calls of all threads, and makes an HTML page of it."""

    def __init__(self, lock: _ReportLock) -> None:
        import sys

        self._lock = lock
        self._session: _marey.Session | None = _marey.Session()
        try:
            self._session.start(name="request", with_stack=True, c_calls=sys.version_info >= (3, 12))
        except BaseException:
            lock.give_back()
            raise

    def page(self, title: str) -> bytes:
        """Stop recording and return the page; if that fails, a page that says why."""
        session, self._session = self._session, None
        assert session is not None
        try:
            trace = session.stop().filtered(fold_imports=True, exclude_running=True)
            return _marey.html_report(trace, title).encode("utf-8", "replace")
        except Exception as error:
            from html import escape

            return f"<p>marey: no report: {escape(str(error))}</p>".encode("utf-8", "replace")
        finally:
            self._lock.give_back()

    def discard(self) -> None:
        """Stop recording, if page() has not."""
        session, self._session = self._session, None
        if session is not None:
            session.discard()
            self._lock.give_back()


_BUSY = b"marey: another request is being recorded; try again\n"


def _page_headers(page: bytes, kind: str = "text/html") -> list[tuple[str, str]]:
    return [
        ("content-type", f"{kind}; charset=utf-8"),
        ("content-length", str(len(page))),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
    ]


class MareyMiddleware:
    """Record the requests of an ASGI or WSGI application as ranges, named by method and route.

    Without further options, requests are recorded while a session runs, and cost next to nothing otherwise. Errors of
    the recording never affect a request.

    Args:
        app: The application. Of a coroutine function, or an object whose ``__call__`` is one, it is ASGI.
        secret: A request with ``?marey=SECRET`` or the header ``X-Marey: SECRET`` is answered with a report of itself.
        debug: ``?marey=1`` is enough for a report. For development only: anybody can ask for it.
        over: Keep the calls of requests that take longer than this: "500ms", or a number of seconds.
        slowest: Keep the calls of this many requests, the slowest ones.
        folder: Where these are written, as captures.
        max_bytes: The memory for the calls that are recorded to find slow requests.
        route: A function from the ASGI scope or WSGI environ of a finished request to its route, for frameworks that
            do not store it there. None: unknown.
        interface: "asgi" or "wsgi", if that cannot be found out from `app`.
    """

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
        self._requests = _Requests(**options)
        self._is_plain = self._requests.is_plain


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
            return
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if self._requests.gives_reports and scope["type"] == "http" and self._asks(scope):
            await self._send_report(scope, receive, send)
            return
        slow = self._requests.slow
        begin = slow.begin() if slow is not None else 0
        request = _late_range(None, send)
        try:
            await self._app(scope, receive, request)
        except BaseException as error:
            if isinstance(error, Exception) and not request.status:
                request.status = 500
            raise
        finally:
            self._end(request, scope, begin)

    def _end(self, request: _marey.late_range, scope: dict[str, Any], begin: int) -> str:
        name = ""
        try:
            name = self._name(scope)
            request.end(name)
            if begin and self._requests.slow is not None:
                self._requests.slow.end(begin, name)
        except Exception as error:
            self._requests.fault(error)
        return name

    def _name(self, scope: dict[str, Any]) -> str:
        requests = self._requests
        route = None if requests.route is None else requests.route(scope)
        if route is None:
            found = scope.get("route")  # Starlette, FastAPI
            route = getattr(found, "path", None)
            if route is None and (endpoint := scope.get("endpoint")) is not None:
                route = f"{getattr(endpoint, '__module__', '')}.{getattr(endpoint, '__qualname__', endpoint)}"
        return requests.name(scope.get("method") or "WEBSOCKET", route)

    def _asks(self, scope: dict[str, Any]) -> bool:
        try:
            header = next((value for name, value in scope["headers"] if name.lower() == _HEADER.encode()), None)
            query = scope.get("query_string", b"").decode("latin-1")
            return self._requests.asks_for_report(query, header.decode("latin-1") if header is not None else None)
        except Exception as error:
            self._requests.fault(error)
            return False

    async def _send_report(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        try:
            report = self._requests.begin_report()
        except Exception as error:
            self._requests.fault(error)
            await self._app(scope, receive, send)
            return
        if report is None:
            await self._answer(send, 503, _BUSY, "text/plain")
            return
        try:
            request = _late_range(None, _discard)
            try:
                await self._app(scope, receive, request)
            finally:
                name = self._end(request, scope, 0)
            await self._answer(send, 200, await _in_thread(report.page, f"{name}: {request.status}"))
        finally:
            report.discard()

    @staticmethod
    async def _answer(send: Any, status: int, page: bytes, kind: str = "text/html") -> None:
        headers = [(name.encode(), value.encode()) for name, value in _page_headers(page, kind)]
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


class _Wsgi(MareyMiddleware):
    """The middleware for WSGI applications."""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if self._is_plain and not _is_recording():
            body: Iterable[bytes] = self._app(environ, start_response)
            return body
        if self._requests.gives_reports and self._asks(environ):
            return self._report(environ, start_response)
        return _WsgiRequest(self._requests, environ, start_response).run(self._app)

    def _asks(self, environ: dict[str, Any]) -> bool:
        try:
            header = environ.get("HTTP_" + _HEADER.upper().replace("-", "_"))
            return self._requests.asks_for_report(environ.get("QUERY_STRING", ""), header)
        except Exception as error:
            self._requests.fault(error)
            return False

    def _report(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        try:
            report = self._requests.begin_report()
        except Exception as error:
            self._requests.fault(error)
            body: Iterable[bytes] = self._app(environ, start_response)
            return body
        if report is None:
            start_response("503 Service Unavailable", _page_headers(_BUSY, "text/plain"))
            return [_BUSY]
        try:
            request = _WsgiRequest(self._requests, environ, None)
            response = request.run(self._app)
            try:
                for _ in response:  # the response itself is discarded
                    pass
            finally:
                getattr(response, "close", lambda: None)()
            page = report.page(f"{request.name}: {request.status}")
        finally:
            report.discard()
        start_response("200 OK", _page_headers(page))
        return [page]


class _WsgiRequest:
    """One request. Its range ends when the server closes the response."""

    def __init__(self, requests: _Requests, environ: dict[str, Any], start_response: Any) -> None:
        self._requests = requests
        self._environ = environ
        self._start_response = start_response
        self._body: Any = None
        self._is_open = True
        self._flask_rule: Any = None
        self.status = 0
        self.bytes = 0
        self.name = ""
        self._begin = requests.slow.begin() if requests.slow is not None else 0
        self._range = _late_range("request")

    def run(self, app: Any) -> Iterable[bytes]:
        try:
            body = app(self._environ, self._start)
        except BaseException:
            self.status = self.status or 500
            self._end()
            raise
        if type(body) in (list, tuple):
            self.bytes += sum(map(len, body))
            self._end()
            return body  # type: ignore[no-any-return]
        self._body = body
        return self

    def _start(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        self.status = int(status[:3]) if status[:3].isdecimal() else 0
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

    def __iter__(self) -> Iterator[bytes]:
        for data in self._body:
            self.bytes += len(data)
            yield data

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._end()

    def _end(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            self.name = self._requests.name(self._environ.get("REQUEST_METHOD", ""), self._route())
            self._range.status, self._range.bytes = self.status, self.bytes
            self._range.end(self.name)
            if self._requests.slow is not None:
                self._requests.slow.end(self._begin, self.name)
        except Exception as error:
            self._requests.fault(error)

    def _route(self) -> str | None:
        own = self._requests.route
        route = None if own is None else own(self._environ)
        if route is None:
            route = getattr(self._flask_rule or self._find_flask_rule(), "rule", None)
        return route

    def _find_flask_rule(self) -> Any:
        """Return the rule that Flask has found. It forgets the request before the response is closed."""
        return getattr(self._environ.get("werkzeug.request"), "url_rule", None)


# ---- frameworks


def flask_app(app: Any, **options: Any) -> Any:
    """Add the middleware to a Flask application, and return the application."""
    app.wsgi_app = MareyMiddleware(app.wsgi_app, **options)
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
        self._requests = _Requests(**getattr(settings, "MAREY", {}))
        self._is_async = bool(iscoroutinefunction(get_response))
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        if self._is_async:
            return self._call_async(request)
        report = self._begin(request)
        if report is False:
            return self._page(_BUSY, 503, "text/plain")
        begin = self._requests.slow.begin() if self._requests.slow is not None else 0
        recorded = _late_range("request")
        response = None
        try:
            response = self._get_response(request)
        finally:
            name = self._end(recorded, begin, request, response)
            if report is not None and response is None:
                report.discard()
        return self._page(report.page(name)) if report is not None else response

    async def _call_async(self, request: Any) -> Any:
        report = self._begin(request)
        if report is False:
            return self._page(_BUSY, 503, "text/plain")
        begin = self._requests.slow.begin() if self._requests.slow is not None else 0
        recorded = _late_range()
        response = None
        try:
            response = await self._get_response(request)
        finally:
            name = self._end(recorded, begin, request, response)
            if report is not None and response is None:
                report.discard()
        return self._page(await _in_thread(report.page, name)) if report is not None else response

    def _begin(self, request: Any) -> Any:
        """Return a report if the request asks for one, False if that has to wait, None otherwise."""
        try:
            asks = self._requests.gives_reports and self._requests.asks_for_report(
                request.META.get("QUERY_STRING", ""), request.headers.get(_HEADER)
            )
            return (self._requests.begin_report() or False) if asks else None
        except Exception as error:
            self._requests.fault(error)
            return None

    def _end(self, recorded: Any, begin: int, request: Any, response: Any) -> str:
        name = ""
        try:
            match = getattr(request, "resolver_match", None)
            route = getattr(match, "route", None)
            name = self._requests.name(request.method or "", f"/{route}" if route is not None else None)
            recorded.status = 500 if response is None else response.status_code
            recorded.bytes = 0 if response is None or response.streaming else len(response.content)
            recorded.end(name)
            if self._requests.slow is not None:
                self._requests.slow.end(begin, name)
        except Exception as error:
            self._requests.fault(error)
        return name

    @staticmethod
    def _page(page: bytes, status: int = 200, kind: str = "text/html") -> Any:
        from django.http import HttpResponse

        return HttpResponse(page, status=status, headers=dict(_page_headers(page, kind)))
