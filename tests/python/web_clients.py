"""Applications, and clients that call them directly, for the tests of the web middleware."""

import asyncio

import marey


class Route:
    path = "/users/{id}"


async def users(scope, receive, send):
    """An ASGI application that finds its route while it runs, as frameworks do."""
    if scope["path"].startswith("/users/"):
        scope["route"] = Route
    with marey.record_function("view"):
        await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": b"abc", "more_body": True})
    await send({"type": "http.response.body", "body": b"de"})


def call_asgi(app, path="/users/7", query="", headers=(), method="GET", kind="http"):
    """Run one request; return the messages that were sent."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.disconnect"}

    scope = {"type": kind, "path": path, "query_string": query.encode(), "headers": list(headers)}
    if kind == "http":
        scope["method"] = method
    asyncio.run(app(scope, receive, send))
    return sent


def greet(environ, start_response):
    with marey.record_function("view"):
        start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


def call_wsgi(app, query="", method="GET", **environ):
    """Run one request; return its status, headers and body."""
    started = []

    def start_response(status, headers, exc_info=None):
        started[:] = [status, dict(headers)]
        return lambda data: None

    body = app({"REQUEST_METHOD": method, "PATH_INFO": "/x", "QUERY_STRING": query, **environ}, start_response)
    try:
        return *started, b"".join(body)
    finally:
        getattr(body, "close", lambda: None)()


def requests_of(recorded):
    """(name, status, bytes) of the requests."""
    rows = [row for row in recorded.rows if "status" in row["keywords"]]
    return [(row["name"], row["keywords"]["status"], row["keywords"]["bytes"]) for row in rows]
