"""The middleware for web requests: direct calls through ASGI and WSGI. Real servers: test_web_servers.py."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import threading
import urllib.request
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import SOURCE
from recorded import recording, report_names
from web_clients import Route, call_asgi, call_wsgi, greet, requests_of, users

import marey
from marey import web
from marey.recording import request_ranges, web_requests  # parts of which no framework makes odd use
from marey.web import MareyMiddleware

SECRET = "open sesame"


# ---- ranges


def test_an_asgi_request_is_a_range_named_by_its_route():
    with recording() as recorded:
        call_asgi(MareyMiddleware(users), "/users/7", "token=secret")
        call_asgi(MareyMiddleware(users), "/users/8", method="POST")
        call_asgi(MareyMiddleware(users), "/else")
    names = [("GET /users/{id}", 201, 5), ("POST /users/{id}", 201, 5), ("GET (no route)", 201, 5)]
    assert sorted(requests_of(recorded)) == sorted(names)
    assert "secret" not in str(recorded.rows)
    request, view = recorded.one("POST /users/{id}"), recorded.named("view")[1]
    assert request["start_ns"] <= view["start_ns"]
    assert view["start_ns"] + view["duration_ns"] <= request["start_ns"] + request["duration_ns"]


def test_the_ranges_of_an_asgi_request_are_in_its_running_parts():
    async def app(scope, receive, send):
        with marey.record_function("before routing"):
            pass
        await asyncio.sleep(0)
        scope["route"] = Route
        with marey.record_function("first"):
            pass
        await asyncio.sleep(0)
        with marey.record_function("second"):
            pass

    async def main():
        wrapped = MareyMiddleware(app)
        scopes = [{"type": "http", "method": "GET", "path": "/", "headers": []} for _ in range(3)]
        await asyncio.gather(*(wrapped(scope, None, None) for scope in scopes))

    with recording() as recorded:
        asyncio.run(main())
    running = "GET /users/{id} (running)"
    assert {recorded.path(row)[-2:] for row in recorded.named("first")} == {(running, "first")}
    assert {recorded.path(row)[-2:] for row in recorded.named("second")} == {(running, "second")}
    # A part that ends before the framework has found the route cannot have its name.
    assert {recorded.path(row)[-2] for row in recorded.named("before routing")} == {"GET (no route) (running)"}
    assert len(recorded.named(running)) == 6 and len(recorded.named("GET /users/{id}")) == 3
    calls = [call for call in recorded.trace.suspended_calls() if call.name.endswith("(running)")]
    assert [(call.parts, call.finished) for call in calls] == [(3, True)] * 3


IN_A_THREAD = "GET /users/{id} (in a thread)"


def test_the_work_of_a_request_in_threads_is_named_after_it():
    pool = ThreadPoolExecutor(1)

    def work(name):
        with marey.record_function(name):
            return name

    def nested(name):
        return work(name), pool.submit(work, "nested").result()

    async def app(scope, receive, send):
        scope["route"] = Route
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, work, "run_in_executor") == "run_in_executor"
        assert await asyncio.to_thread(work, name="to_thread") == "to_thread"
        assert await asyncio.gather(asyncio.to_thread(work, "a task"), asyncio.to_thread(work, "a task"))
        assert await loop.run_in_executor(None, nested, "outer") == ("outer", "nested")
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)

    async def main():
        await MareyMiddleware(app)({"type": "http", "method": "GET", "path": "/", "headers": []}, None, None)
        await asyncio.to_thread(work, "no request")

    with recording() as recorded:
        asyncio.run(main())
        pool.submit(work, "no request").result()
    for name in ("run_in_executor", "to_thread", "a task", "outer", "nested"):
        assert {recorded.path(row) for row in recorded.named(name)} == {(IN_A_THREAD, name)}
    assert {recorded.path(row) for row in recorded.named("no request")} == {("no request",)}
    assert len(recorded.named(IN_A_THREAD)) == 7 and len(recorded.named("no request")) == 2
    calls = [call for call in recorded.trace.suspended_calls() if call.name.endswith("(running)")]
    assert len(calls) == 1 and calls[0].finished
    pool.shutdown()


def test_the_work_of_wsgi_requests_in_threads_is_named_after_them():
    with ThreadPoolExecutor(2) as pool, recording() as recorded:

        def app(environ, start_response):
            start_response("200 OK", [])
            return list(pool.map(lambda number: greet_in_range(str(number)), range(3)))

        def greet_in_range(text):
            with marey.record_function("greeting"):
                return text.encode()

        wrapped = MareyMiddleware(app, route=lambda environ: "/users/{id}", interface="wsgi")
        assert call_wsgi(wrapped)[-1] == b"012"
        pool.submit(greet_in_range, "later").result()
    paths = [recorded.path(row) for row in recorded.named("greeting")]
    assert sorted(paths) == [("GET /users/{id} (in a thread)", "greeting")] * 3 + [("greeting",)]


def test_functions_are_handed_to_threads_unchanged_without_a_request():
    assert request_ranges.request_work(work_of_nobody) is work_of_nobody


def work_of_nobody():
    pass


def test_parts_pass_on_values_exceptions_and_results():
    class Future:
        def __await__(self):
            return (yield "wanted")

    async def app():
        caught = None
        try:
            assert await Future() == "sent"
            await Future()
        except KeyError as error:
            caught = error
        return caught

    for recording_or_not in (recording(), contextlib.nullcontext()):
        with recording_or_not:
            coroutine = await_parts(app())
            assert coroutine.send(None) == coroutine.send("sent") == "wanted"
            error = KeyError("own")
            with pytest.raises(StopIteration) as stopped:
                coroutine.throw(error)
            assert stopped.value.value is error
            closed = await_parts(app())
            closed.send(None)
            closed.close()
            left = await_parts(Future())  # no coroutine, but an awaitable; nobody ends it
            assert left.send(None) == "wanted"
            del left
            with pytest.raises(TypeError, match="int can't be used in 'await' expression"):
                await_parts(3).send(None)


async def await_parts(awaitable):
    request = request_ranges.RequestRange(
        web_requests.Requests(), lambda subject: web_requests.Names("test"), None, False, {}
    )
    return await request.awaits(awaitable)


def test_concurrent_requests_are_ranges_of_their_own():
    async def main():
        app = MareyMiddleware(users)

        async def send(message):
            await asyncio.sleep(0)

        scopes = [{"type": "http", "method": "GET", "path": f"/users/{n}", "headers": []} for n in range(20)]
        await asyncio.gather(*(app(scope, None, send) for scope in scopes))

    with recording() as recorded:
        asyncio.run(main())
    assert requests_of(recorded) == [("GET /users/{id}", 201, 5)] * 20


def test_a_wsgi_request_contains_its_ranges():
    with recording() as recorded:
        status, headers, body = call_wsgi(MareyMiddleware(greet))
    assert (status, headers, body) == ("200 OK", {"Content-Type": "text/plain"}, b"hello")
    assert requests_of(recorded) == [("GET (no route)", 200, 5)]
    assert recorded.path(recorded.one("view")) == ("GET (no route)", "view")


def test_a_streamed_wsgi_response_counts_until_it_is_closed():
    closed = []

    class Stream:
        def __iter__(self):
            with marey.record_function("produce"):
                yield b"1234"
            yield b"56"

        def close(self):
            closed.append(True)

    def app(environ, start_response):
        start_response("206 Partial Content", [])(b"head")
        return Stream()

    with recording() as recorded:
        assert call_wsgi(MareyMiddleware(app))[2] == b"123456"
    assert closed == [True]
    assert requests_of(recorded) == [("GET (no route)", 206, 10)]
    assert recorded.path(recorded.one("produce")) == ("GET (no route)", "produce")


class Chunks:
    """A response that is not a list, as frameworks return it."""

    def __init__(self, *chunks):
        self._chunks = chunks

    def __iter__(self):
        return iter(self._chunks)


@pytest.mark.parametrize(
    "headers", [[], [("content-length", "4")], [(b"odd", 1), None]], ids=["plain", "length", "odd"]
)
@pytest.mark.parametrize("read", ["all", "first", "none"])
def test_a_response_that_nobody_closes_ends_with_its_last_byte_or_with_itself(headers, read):
    def app(environ, start_response):
        with marey.record_function("view"):
            start_response("200 OK", headers)
        return Chunks(b"abcd")

    wrapped = MareyMiddleware(app, interface="wsgi")
    with recording() as recorded:
        for _ in range(3):
            response = wrapped({"REQUEST_METHOD": "GET"}, lambda *_: None)
            chunks = iter(response)
            if read == "all":
                assert list(chunks) == [b"abcd"]
            elif read == "first":
                assert next(chunks) == b"abcd"
            if read == "all" or (read == "first" and headers and headers[0][0] == "content-length"):
                with marey.record_function("after"):
                    pass
            del response, chunks
    assert requests_of(recorded) == [("GET (no route)", 200, 0 if read == "none" else 4)] * 3
    assert {recorded.path(row) for row in recorded.named("view")} == {("GET (no route)", "view")}
    assert {recorded.path(row) for row in recorded.named("after")} <= {("after",)}


def test_the_applications_errors_are_unchanged_and_recorded():
    async def fails(scope, receive, send):
        raise KeyError("own")

    def raises(environ, start_response):
        raise KeyError("own")

    async def is_cancelled(scope, receive, send):
        raise asyncio.CancelledError

    with recording() as recorded:
        with pytest.raises(KeyError, match="own"):
            call_asgi(MareyMiddleware(fails))
        with pytest.raises(KeyError, match="own"):
            call_wsgi(MareyMiddleware(raises))
        with pytest.raises(asyncio.CancelledError):
            call_asgi(MareyMiddleware(is_cancelled))
    assert sorted(status for _, status, _ in requests_of(recorded)) == [0, 500, 500]


def test_websockets_are_recorded_and_other_scopes_pass_through():
    async def app(scope, receive, send):
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": "abc"})
            await send({"type": "websocket.close", "code": 1001})

    with recording() as recorded:
        assert len(call_asgi(MareyMiddleware(app), kind="websocket")) == 3
        call_asgi(MareyMiddleware(app), kind="lifespan")
    assert requests_of(recorded) == [("WEBSOCKET (no route)", 1001, 3)]


def test_two_middlewares_record_a_request_twice():
    with recording() as recorded:
        assert call_wsgi(MareyMiddleware(MareyMiddleware(greet)))[2] == b"hello"
        assert len(call_asgi(MareyMiddleware(MareyMiddleware(users)))) == 3
    assert len(requests_of(recorded)) == 4


def test_nothing_is_recorded_without_a_session():
    with recording() as recorded:
        pass
    call_asgi(MareyMiddleware(users))
    assert recorded.rows == []


def test_a_session_that_starts_during_a_request_has_its_end():
    session = marey.Session()

    async def app(scope, receive, send):
        session.start()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    with recording():
        call_asgi(MareyMiddleware(app))
    assert {event.name for event in session.stop().events()} == {"GET (no route)", "GET (no route) (running)"}


def test_a_request_that_ends_while_its_calls_begin_to_be_recorded_keeps_its_status():
    class Body(list):
        def close(self):  # as when another thread's request asks for a report meanwhile
            session.start(with_stack=True)

    def app(environ, start_response):
        start_response("500 Internal Server Error", [])
        return Body([b"failed"])

    session = marey.Session()
    with recording() as recorded:
        call_wsgi(MareyMiddleware(app))
        session.discard()
        call_wsgi(MareyMiddleware(greet))
    assert requests_of(recorded) == [("GET (no route)", 500, 6), ("GET (no route)", 200, 5)]


# ---- names


def test_names_are_routes_of_the_users_function_or_the_endpoint():
    async def view(scope, receive, send):
        scope["endpoint"] = test_nothing_is_recorded_without_a_session

    with recording() as recorded:
        call_asgi(MareyMiddleware(users, route=lambda scope: "/own"))
        call_asgi(MareyMiddleware(view))
        call_wsgi(MareyMiddleware(greet, route=lambda environ: "/mine"))
    names = [name for name, _, _ in requests_of(recorded)]
    endpoint = f"GET {__name__}.test_nothing_is_recorded_without_a_session"
    assert sorted(names) == sorted(["GET /own", endpoint, "GET /mine"])


def test_many_routes_are_folded_and_that_is_reported_once():
    number = iter(range(100_000))
    app = MareyMiddleware(greet, route=lambda environ: f"/{next(number)}")
    with recording() as recorded, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(web_requests.MAX_ROUTES + 50):
            call_wsgi(app)
    names = {name for name, _, _ in requests_of(recorded)}
    assert len(names) <= web_requests.MAX_ROUTES + 1 and "GET (other routes)" in names
    assert [str(warning.message) for warning in warned] == [
        "more than 1000 routes: further ones are recorded as (other routes)"
    ]
    assert {app._requests.names("GET", f"/{n}").request for n in range(1_000, 100_000)} == {"GET (other routes)"}
    assert len(app._requests._names) <= web_requests.MAX_ROUTES + 1


def test_methods_and_routes_cannot_inject_anything():
    with recording() as recorded:
        call_wsgi(
            MareyMiddleware(greet, route=lambda environ: "/a\r\nSet-Cookie: x\x1b[31m" + "y" * 9000), method="EVIL\r\n"
        )
    ((name, _, _),) = requests_of(recorded)
    assert name.startswith("OTHER /a\\r\\nSet-Cookie: x\\x1b[31my") and len(name) < 300


def test_a_fault_of_the_recording_does_not_fail_the_request():
    def route(scope):
        raise RuntimeError("broken")

    with recording(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert call_wsgi(MareyMiddleware(greet, route=route))[2] == b"hello"
        app = MareyMiddleware(users, route=route)
        assert len(call_asgi(app)) == len(call_asgi(app)) == 3
        assert "view" in names_in(
            page_of(call_asgi(MareyMiddleware(users, route=route, debug=True), query="marey=1"))[1]
        )
        assert b"<html" in call_wsgi(MareyMiddleware(greet, route=route, debug=True), "marey=1")[2]
    assert len(warned) == 4 and "a request could not be recorded: RuntimeError: broken" in str(warned[0].message)


# ---- reports


def names_in(page):
    """The functions and ranges of a report, without files and lines."""
    return {name.rpartition("): ")[2] for name in report_names(page)}


def page_of(sent):
    """The status and body of an ASGI response."""
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()


def test_a_request_with_the_secret_returns_its_report():
    app = MareyMiddleware(users, secret=SECRET)
    for query, headers in (("a=1&marey=open%20sesame", ()), ("", [(b"X-Marey", SECRET.encode())])):
        sent = call_asgi(app, query=query, headers=headers)
        status, page = page_of(sent)
        headers = dict(sent[0]["headers"])
        assert status == 200 and headers[b"content-type"].startswith(b"text/html")
        assert headers[b"cache-control"] == b"no-store" and int(headers[b"content-length"]) == len(page.encode())
        assert "GET /users/{id}" in report_names(page)
    status, _, body = call_wsgi(MareyMiddleware(greet, secret=SECRET), HTTP_X_MAREY=SECRET)
    assert status == "200 OK" and "greet" in names_in(body.decode())


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ({}, "marey=1"),
        ({"secret": SECRET}, "marey=1"),
        ({"secret": SECRET}, "marey="),
        ({"secret": SECRET}, "marey=open+sesam"),
        ({"secret": SECRET}, "marey=%F0%9F%A6%8A%00"),
        ({"debug": True}, "marey=2"),
        ({"debug": True}, "x=marey"),
        ({"debug": True}, ";".join(["marey=1&a=1"] * 2000)),
    ],
)
def test_other_requests_are_answered_as_before(options, query):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too many fields
        assert page_of(call_asgi(MareyMiddleware(users, **options), query=query)) == (201, "abcde")
        assert call_wsgi(MareyMiddleware(greet, **options), query)[2] == b"hello"
        assert call_wsgi(MareyMiddleware(greet, **options), HTTP_X_MAREY="wrong")[2] == b"hello"


def test_debug_returns_reports_without_a_secret_and_names_are_escaped():
    def app(environ, start_response):
        with marey.record_function("</script><script>alert(1)</script>"):
            return greet(environ, start_response)

    body = call_wsgi(MareyMiddleware(app, debug=True), "marey=1")[2].decode()
    assert "alert(1)" not in body and "</script><script>alert(1)</script>" in report_names(body)


def test_the_report_contains_awaits_and_work_in_executors():
    def in_executor():
        with marey.record_function("executor work"):
            pass

    async def app(scope, receive, send):
        await asyncio.get_running_loop().run_in_executor(None, in_executor)
        await users(scope, receive, send)

    _, page = page_of(call_asgi(MareyMiddleware(app, debug=True), query="marey=1"))
    assert {"executor work", "view"} <= names_in(page)


def test_one_report_at_a_time():
    inside, goes_on = threading.Event(), threading.Event()

    def app(environ, start_response):
        inside.set()
        assert goes_on.wait(30)
        return greet(environ, start_response)

    wrapped = MareyMiddleware(app, debug=True)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(call_wsgi, wrapped, "marey=1")
        assert inside.wait(30)
        status, _, body = call_wsgi(wrapped, "marey=1")
        goes_on.set()
        assert (status, body) == ("503 Service Unavailable", web_requests.BUSY)
        assert "greet" in names_in(first.result(30)[2].decode())
    assert "greet" in names_in(call_wsgi(wrapped, "marey=1")[2].decode())


def test_a_request_that_fails_ends_its_report():
    async def fails(scope, receive, send):
        raise KeyError("own")

    app = MareyMiddleware(fails, debug=True)
    for _ in range(2):  # the second would have to wait if the first had not ended
        with pytest.raises(KeyError, match="own"):
            call_asgi(app, query="marey=1")
    assert not marey.is_recording()


# ---- wrong use


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"secret": "short"}, ValueError, "secret must be a text of at least 8 characters"),
        ({"over": "1s"}, ValueError, "over and slowest need folder"),
        ({"folder": "x"}, ValueError, "folder needs over"),
        ({"over": "soon", "folder": "."}, ValueError, "invalid time 'soon'"),
        ({"slowest": -1, "folder": "."}, ValueError, "slowest must be a number of requests, not -1"),
        ({"route": 3}, TypeError, "route must be a callable"),
        ({"record": "header:a"}, TypeError, "record must be a list of texts, not the text 'header:a'"),
        ({"record": ["cookie:a"]}, ValueError, "expected 'header:NAME', 'query:NAME' or 'traceparent', not 'cookie:a'"),
        ({"record": ["header:"]}, ValueError, "not 'header:'"),
        ({"record": ["query:a"] * 11}, ValueError, "record: at most 10 values, not 11"),
        ({"interface": "cgi"}, ValueError, "interface must be 'asgi' or 'wsgi', not 'cgi'"),
        ({"sceret": SECRET}, TypeError, "sceret"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        MareyMiddleware(greet, **options)


def test_wrong_options_do_not_fail_requests_of_frameworks_that_look_at_them_late():
    starlette = pytest.importorskip("starlette.applications")
    responses = pytest.importorskip("starlette.responses")

    async def hello(request):
        return responses.PlainTextResponse("hello")

    app = starlette.Starlette()
    app.add_route("/x", hello)
    app.add_middleware(MareyMiddleware, secret="short")
    with pytest.warns(UserWarning, match="MareyMiddleware: secret must be a text of at least 8 characters"):
        sent = call_asgi(app, "/x", "marey=short")
    assert sent[0]["status"] == 200 and sent[1]["body"] == b"hello"
    with pytest.raises(ValueError, match="secret must be a text of at least 8 characters"):
        web.starlette_app(starlette.Starlette(), secret="short")
    app = web.starlette_app(starlette.Starlette(), secret=SECRET)
    app.add_route("/x", hello)
    assert b"<html" in call_asgi(app, "/x", headers=[(b"x-marey", SECRET.encode())])[1]["body"][:200]


def test_an_application_must_be_callable_and_its_interface_is_recognised():
    import functools

    class Object:
        async def __call__(self, scope, receive, send):
            pass

    with pytest.raises(TypeError, match="app must be an ASGI or WSGI application, not 3"):
        MareyMiddleware(3)
    for app in (users, Object(), functools.partial(users), MareyMiddleware(users)):
        assert isinstance(MareyMiddleware(app), web._Asgi)
    for app in (greet, functools.partial(greet), MareyMiddleware(greet)):
        assert isinstance(MareyMiddleware(app), web._Wsgi)
    assert isinstance(MareyMiddleware(greet, interface="asgi"), web._Asgi)


def test_importing_the_module_imports_no_framework(run_python):
    text = "import sys, marey; before = set(sys.modules); import marey.web; print(*set(sys.modules) - before)"
    ours = {f"marey.{name}" for name in ("web", "recording", "recording.web_requests", "recording.request_ranges")}
    assert set(run_python(text).split()) <= {*ours, "__future__", "contextvars", "_contextvars"}


def test_the_first_three_lines_of_the_guide_work_when_pasted(tmp_path):
    page = (SOURCE / "docs" / "guide" / "web.md").read_text()
    lines = page.partition("```python\n")[2].partition("```")[0].splitlines()
    assert len(lines) == 3
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Print when the server listens; it does so before it serves.
    program = "\n".join([*lines[:2], lines[2].replace("8000", str(port)).replace("make_server", "announced", 1)])
    program = "def announced(*a):\n    s = make_server(*a)\n    print('ready', flush=True)\n    return s\n" + program
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as response:
            assert b"Hello world!" in response.read()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/?marey=1", timeout=60) as response:
            assert "demo_app" in names_in(response.read().decode())
    finally:
        process.kill()
        process.communicate()
