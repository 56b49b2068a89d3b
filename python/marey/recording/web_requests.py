"""The parts of the web middleware that do not depend on an interface: names, secrets, recorded values, reports."""

from __future__ import annotations

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from threading import Lock
    from typing import Any, Literal

    from marey.recording.slow_requests import SlowRequests

    Route = Callable[[dict[str, Any]], "str | None"]
    Values = dict[str, str]

MAX_ROUTES = 1000
MAX_VALUES = 10
BUSY = b"marey: another request is being recorded; try again\n"
REPORT_HEADER = "x-marey"
_METHODS = frozenset("GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH QUERY WEBSOCKET".split())
_PARAMETER = "marey"
_OTHER_ROUTES = "(other routes)"
_NO_ROUTE = "(no route)"


class Names:
    """The names of the ranges of a request: all of it, each time it runs, and its work in threads and tasks."""

    __slots__ = ("part", "request", "task", "thread")

    def __init__(self, name: str) -> None:
        self.request = name
        self.part = f"{name} (running)"
        self.thread = f"{name} (in a thread)"
        self.task = f"{name} (in a task)"


class Requests:
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
        record: Iterable[str] = (),
    ) -> None:
        from threading import Lock

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
        self.recorded = _recorded(record)
        self._names: dict[tuple[str, str | None], Names] = {}  # by method and route
        self._has_warned = self._has_faults = False
        self._reports = Lock()  # at most one at a time in a process: each records every thread
        self.slow: SlowRequests | None = None
        if folder:
            from marey.recording.slow_requests import SlowRequests

            self.slow = SlowRequests(folder, over, slowest, max_bytes)
        self.gives_reports = debug or secret is not None
        self.is_plain = not self.gives_reports and self.slow is None  # it only records into other sessions

    def names(self, method: str, route: str | None) -> Names:
        """Return the names of a request with this method and route."""
        key = (method if method in _METHODS else "OTHER", route or None)
        if len(self._names) >= MAX_ROUTES and key not in self._names:
            key = (key[0], _OTHER_ROUTES)
            if not self._has_warned:
                from marey._warnings import warn

                self._has_warned = True
                warn(f"more than {MAX_ROUTES} routes: further ones are recorded as {_OTHER_ROUTES}")
                _marey.instant(f"marey: more than {MAX_ROUTES} routes")
        if key not in self._names:
            from marey._text import printable

            self._names[key] = Names(printable(f"{key[0]} {key[1] or _NO_ROUTE}"[:200]))
        return self._names[key]

    def finder(self, find: Callable[[Any], tuple[str, str | None]]) -> Callable[[Any], Names]:
        """Return a function that returns the names of a request; `find` returns its method and route."""

        def names(subject: Any) -> Names:
            try:
                method_and_route = find(subject)
                return self._names.get(method_and_route) or self.names(*method_and_route)
            except Exception as error:
                self.fault(error)
                return self.names("OTHER", None)

        return names

    def end_slow(self, slow: SlowRequests, begin: int, name: str, values: Values) -> None:
        """End a request that began then."""
        try:
            slow.end(begin, name, values)
        except Exception as error:
            self.fault(error)

    def values(self, header: Callable[[str], str | None], query: str, scope: dict[str, Any]) -> Values:
        """Return what is recorded of a request. `scope` gets the header for the requests that this one makes."""
        values: Values = {}
        try:
            for kind, name in self.recorded:
                if kind == "header":
                    _add(values, f"header:{name}", header(name))
                elif kind == "query":
                    from urllib.parse import parse_qs

                    _add(values, f"query:{name}", ", ".join(parse_qs(query, max_num_fields=1000).get(name, [])))
                else:
                    from marey.context.span import Span

                    span = Span(header(kind))
                    scope["marey.traceparent"] = span.traceparent
                    values.update({key: text for key, text in span.values.items() if key != "scope"})
        except Exception as error:
            self.fault(error)
        return values

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

    def begin_report(self, asked: Callable[[], tuple[str, str | None]]) -> Report | Literal[False] | None:
        """Start to record a request with its calls if it asks for it; `asked` returns its query and header.

        None if it does not; False if another request is being recorded.
        """
        try:
            if self.gives_reports and self.asks_for_report(*asked()):
                return self._reports.acquire(blocking=False) and Report(self._reports)
        except Exception as error:
            self.fault(error)
        return None

    def fault(self, error: BaseException) -> None:
        """Report an error of this module, once. The request goes on."""
        if not self._has_faults:
            self._has_faults = True
            from marey._warnings import warn

            warn(f"a request could not be recorded: {type(error).__name__}: {error}")


class Report:
    """Records one request with the calls of all threads, and makes an HTML page of it."""

    def __init__(self, lock: Lock) -> None:
        import sys

        self._lock = lock
        self._session: _marey.Session | None = _marey.Session()
        try:
            self._session.start(name="request", with_stack=True, c_calls=sys.version_info >= (3, 12))
        except BaseException:
            lock.release()
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
            self._lock.release()

    def discard(self) -> None:
        """Stop recording, if page() has not."""
        session, self._session = self._session, None
        if session is not None:
            session.discard()
            self._lock.release()


def _recorded(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the kind and the name of each value to record."""
    if isinstance(names, str):
        raise TypeError(f"record must be a list of texts, not the text {names!r}")
    found = []
    for each in names:
        kind, _, name = each.partition(":")
        if (kind not in ("header", "query") or not name) and each != "traceparent":
            raise ValueError(f"record: expected 'header:NAME', 'query:NAME' or 'traceparent', not {each!r}")
        found.append((kind, name.lower() if kind == "header" else name))
    if len(found) > MAX_VALUES:
        raise ValueError(f"record: at most {MAX_VALUES} values, not {len(found)}")
    return found


def _add(values: Values, key: str, text: str | None) -> None:
    if text:
        from marey._text import printable

        values[key] = printable(text[:200])


def page_headers(page: bytes, kind: str = "text/html") -> list[tuple[str, str]]:
    """Return the headers of a response that is `page`."""
    return [
        ("content-type", f"{kind}; charset=utf-8"),
        ("content-length", str(len(page))),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
    ]
