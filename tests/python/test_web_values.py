"""The middleware for web requests: recorded values, distributed traces, slow requests."""

import json
import re
import time
import warnings

import pytest
from range_rows import range_rows
from recorded import recording
from web_clients import call_asgi, call_wsgi, greet, users

import marey
from marey.web import MareyMiddleware

HEADERS = [(b"User-Agent", b"test\r\nX: \x1b[31m\xff"), (b"authorization", b"hunter2")]
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def keywords(recorded):
    (row,) = [row for row in recorded.rows if "status" in row["keywords"]]
    return row["keywords"]


def test_only_named_headers_and_parameters_are_recorded():
    options = {"record": ["header:User-Agent", "query:page", "header:absent"]}
    with recording() as asgi:
        call_asgi(MareyMiddleware(users, **options), query="page=2&token=hunter2&page=%1b", headers=HEADERS)
    with recording() as wsgi:
        call_wsgi(
            MareyMiddleware(greet, **options),
            query="page=2&token=hunter2&page=%1b",
            HTTP_USER_AGENT="test\r\nX: \x1b[31m\xff",
            HTTP_AUTHORIZATION="hunter2",
        )
    for recorded, status, size in ((asgi, 201, 5), (wsgi, 200, 5)):
        assert keywords(recorded) == {
            "status": status,
            "bytes": size,
            "header:user-agent": "test\\r\\nX: \\x1b[31m\xff",
            "query:page": "2, \\x1b",
        }
        assert "hunter2" not in str(recorded.rows)


def test_a_request_joins_its_distributed_trace(tmp_path):
    sent = []

    async def app(scope, receive, send):
        sent.append(scope["marey.traceparent"])
        await users(scope, receive, send)

    with recording() as recorded:
        call_asgi(MareyMiddleware(app, record=["traceparent"]), headers=[(b"traceparent", PARENT.encode())])
    found = keywords(recorded)
    assert found["traceparent"] == PARENT
    assert sent == [f"00-4bf92f3577b34da6a3ce929d0e0e4736-{found['span_id']}-01"]
    recorded.trace.export(tmp_path / "spans.otlp.json")
    spans = json.loads((tmp_path / "spans.otlp.json").read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]
    (span,) = [span for span in spans if span["name"] == "GET /users/{id}"]
    assert (span["traceId"], span["spanId"]) == ("4bf92f3577b34da6a3ce929d0e0e4736", found["span_id"])
    assert span["parentSpanId"] == "00f067aa0ba902b7"
    with recording() as recorded:
        call_wsgi(MareyMiddleware(greet, record=["traceparent"]), HTTP_TRACEPARENT="invalid")
    assert re.fullmatch("[0-9a-f]{32}", keywords(recorded)["trace_id"])


def test_long_values_are_cut():
    with recording() as recorded:
        call_wsgi(MareyMiddleware(greet, record=["query:a"]), "a=" + "x" * 300)
    assert "x" * 200 in keywords(recorded).values() and "x" * 201 not in str(recorded.rows)


def test_values_that_cannot_be_read_do_not_fail_the_request():
    with recording() as recorded, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        app = MareyMiddleware(greet, record=["query:a"])
        assert call_wsgi(app, "&".join(["a=1"] * 2000))[2] == b"hello"
    assert keywords(recorded) == {"status": 200, "bytes": 5}
    assert "a request could not be recorded" in str(warned[0].message)


# ---- slow requests


def slow(environ, start_response):
    end = time.monotonic() + float(environ["HTTP_X_SECONDS"])
    while time.monotonic() < end:
        len("")
    return greet(environ, start_response)


def kept(folder):
    return sorted(path.name for path in folder.iterdir())


def run_slow(app, *seconds):
    for each in seconds:
        call_wsgi(app, HTTP_X_SECONDS=str(each))
        app._requests.slow.wait()


@pytest.fixture
def stopped():
    """Stops the recordings of the middlewares that a test adds."""
    apps = []
    yield apps
    for app in apps:
        app._requests.slow._session.discard()


def test_requests_over_a_limit_keep_their_calls(tmp_path, stopped):
    app = MareyMiddleware(
        slow, over="50ms", folder=str(tmp_path), route=lambda environ: "/slow/<x>", record=["traceparent"]
    )
    stopped.append(app)
    run_slow(app, 0, 0.06, 0)
    (name,) = kept(tmp_path)
    assert re.fullmatch(r"\d{6}ms-GET-slow-x-\d+-1\.marey", name)
    trace = marey.load(tmp_path / name)
    assert trace.metadata["request"] == "GET /slow/<x>"
    assert re.fullmatch("[0-9a-f]{32}", trace.metadata["trace_id"])
    assert any(average.key.endswith("): slow") for average in trace.key_averages())
    assert trace.window_ns >= 50_000_000


def test_only_the_slowest_requests_are_kept(tmp_path, stopped):
    app = MareyMiddleware(slow, slowest=2, folder=str(tmp_path))
    stopped.append(app)
    run_slow(app, 0.02, 0.001, 0.03, 0.001, 0.05)
    assert len(kept(tmp_path)) == 2
    assert min(marey.load(tmp_path / name).window_ns for name in kept(tmp_path)) >= 30_000_000


def test_marey_records_no_thread_of_its_own(tmp_path, stopped):
    app = MareyMiddleware(slow, over=0.0, folder=str(tmp_path))
    stopped.append(app)
    for _ in range(2):  # a session that is there before the thread, and one that starts later
        with marey.profile(with_stack=True) as prof:
            run_slow(app, 0)
        rows = range_rows(prof.trace)
        assert len({row["thread"] for row in rows}) == 1
        assert not [row["name"] for row in rows if "SimpleQueue" in row["name"] or "_write" in row["name"]]
