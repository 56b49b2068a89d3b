"""The middleware for web requests in real servers and frameworks, on the loopback interface."""

import contextlib
import http.client
import importlib.util
import os
import signal
import socket
import subprocess
import sys

import pytest
from range_rows import range_rows
from recorded import report_names
from running import environment

import marey

pytestmark = pytest.mark.skipif("MAREY_TEST_SANITIZER" in os.environ, reason="the servers load other programs")

FASTAPI = """
import asyncio
from fastapi import FastAPI, WebSocket
from fastapi.responses import StreamingResponse
from marey.web import MareyMiddleware
import marey

app = FastAPI()
app.add_middleware(MareyMiddleware, secret="open sesame")

@app.get("/items/{item_id}")
async def item(item_id: int):
    await asyncio.sleep(0)
    return {"id": item_id}

@app.get("/sync/{name}")
def in_a_thread(name: str):
    with marey.record_function("sync view"):
        return name

@app.get("/stream")
async def stream():
    async def parts():
        for _ in range(3):
            await asyncio.sleep(0)
            yield b"x" * 1000
    return StreamingResponse(parts())

@app.get("/fails")
async def fails():
    raise ValueError("own")

@app.websocket("/ws/{room}")
async def room(websocket: WebSocket, room: str):
    await websocket.accept()
    await websocket.send_text(room)
    await websocket.close()
"""

FLASK = """
from flask import Flask, Response
import marey.web

app = marey.web.flask_app(Flask(__name__), secret="open sesame")

@app.get("/items/<int:item_id>")
def item(item_id):
    return {"id": item_id}

@app.get("/stream")
def stream():
    return Response(b"x" * 1000 for _ in range(3))

@app.get("/fails")
def fails():
    raise ValueError("own")
"""

DJANGO = """
from django.conf import settings
settings.configure(
    SECRET_KEY="x", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], DEBUG=False,
    MIDDLEWARE=["marey.web.DjangoMiddleware"], MAREY={"secret": "open sesame"},
)
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path
import marey

def item(request, item_id):
    with marey.record_function("sync view"):
        return HttpResponse(b'{"id":%d}' % item_id)

def stream(request):
    return StreamingHttpResponse(b"x" * 1000 for _ in range(3))

def fails(request):
    raise ValueError("own")

urlpatterns = [path("items/<int:item_id>", item), path("stream", stream), path("fails", fails)]
from django.core.{interface} import get_{interface}_application
app = get_{interface}_application()
"""


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


class Server:
    """A server under ``marey run`` that takes its listening socket from this process, which therefore never waits."""

    def __init__(self, folder, text, words):
        (folder / "site_under_test.py").write_text(text)
        self.folder = folder
        with socket.socket() as listening, (folder / "log.txt").open("w") as log:
            listening.bind(("127.0.0.1", 0))
            listening.listen(64)
            self.port = listening.getsockname()[1]
            file = listening.fileno()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "marey", "run", "-q", "--no-calls", "-o", "out.marey", "-m"]
                + [word.format(fd=file) for word in words],
                cwd=folder,
                env=environment(),
                pass_fds=[file],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def get(self, path, headers=None):
        """Return the status and body of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read()

    def stop(self):
        """End the server; return (name, status, bytes) of the requests of all of its processes."""
        self.process.send_signal(signal.SIGTERM)  # graceful: the last request may end after its response
        self.process.wait(timeout=60)
        rows, self.parents = [], {}
        for path in sorted(self.folder.glob("out*.marey")):
            assert b"sesame" not in path.read_bytes() and b"hunter2" not in path.read_bytes()
            read = range_rows(marey.load(path))
            self.parents.update((row["name"], read[row["parent"]]["name"]) for row in read if row["parent"] is not None)
            rows += read
        self.names = {row["name"] for row in rows}
        values = [(row["name"], row["keywords"]) for row in rows if "status" in row["keywords"]]
        return sorted((name, found["status"], found["bytes"]) for name, found in values)


@pytest.fixture
def serve(tmp_path):
    servers = []

    def serve(text, *words):
        servers.append(Server(tmp_path, text, words))
        return servers[-1]

    yield serve
    for server in servers:
        with contextlib.suppress(ProcessLookupError):  # its workers too
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait(timeout=60)


UVICORN = ("uvicorn", "site_under_test:app", "--fd", "{fd}", "--log-level", "error")
HYPERCORN = ("hypercorn", "site_under_test:app", "--bind", "fd://{fd}", "--graceful-timeout", "1")
GUNICORN = ("gunicorn", "site_under_test:app", "--bind", "fd://{fd}", "--workers=1", "--threads=2", "--timeout=0")


def check(server, item, stream, fails):
    """Make requests of every kind, and compare the recorded ones with those expected."""
    assert server.get("/items/7?password=hunter2", {"Authorization": "hunter2"}) == (200, b'{"id":7}')
    assert server.get("/items/8")[0] == 200
    assert server.get("/stream") == (200, b"x" * 3000)
    assert server.get("/fails")[0] == 500
    assert server.get("/items/9?marey=1") == (200, b'{"id":9}')
    for path, headers in (("/items/9?marey=open+sesame", {}), ("/items/9", {"X-Marey": "open sesame"})):
        status, page = server.get(path, headers)
        assert status == 200 and item in report_names(page.decode())
    recorded = server.stop()
    assert recorded.count((item, 200, 8)) == 5, (recorded, (server.folder / "log.txt").read_text())
    assert stream in recorded, recorded
    assert any(row[:2] == (fails, 500) for row in recorded), recorded


@needs("fastapi", "uvicorn")
def test_fastapi_on_uvicorn(serve):
    server = serve(FASTAPI, *UVICORN)
    assert server.get("/sync/a") == (200, b'"a"')
    check(server, "GET /items/{item_id}", ("GET /stream", 200, 3000), "GET /fails")
    assert "GET /sync/{name}" in server.names and server.parents["sync view"] == "GET /sync/{name} (in a thread)"


@needs("fastapi", "hypercorn")
def test_fastapi_on_hypercorn(serve):
    check(serve(FASTAPI, *HYPERCORN), "GET /items/{item_id}", ("GET /stream", 200, 3000), "GET /fails")


@needs("flask", "gunicorn")
def test_flask_on_gunicorn(serve):
    text = FLASK.replace('return {"id": item_id}', "return b'{\"id\":%d}' % item_id")
    check(serve(text, *GUNICORN), "GET /items/<int:item_id>", ("GET /stream", 200, 3000), "GET /fails")


@needs("django", "gunicorn")
def test_django_on_gunicorn(serve):
    text = DJANGO.replace("{interface}", "wsgi")
    check(serve(text, *GUNICORN), "GET /items/<int:item_id>", ("GET /stream", 200, 0), "GET /fails")


@needs("django", "uvicorn")
def test_django_on_uvicorn(serve):
    text = DJANGO.replace("{interface}", "asgi")
    server = serve(text, *UVICORN)
    check(server, "GET /items/<int:item_id>", ("GET /stream", 200, 0), "GET /fails")
    assert server.parents["sync view"] == "GET /items/<int:item_id> (in a thread)"


@needs("fastapi", "uvicorn", "wsproto")
def test_a_websocket_on_uvicorn(serve):
    server = serve(FASTAPI, *UVICORN)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(
            b"GET /ws/42 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        received = b""
        while b"\x81\x0242\x88" not in received:  # a text of two bytes, and the start of the closing frame
            received += client.recv(4096)
            assert received
        client.sendall(b"\x88\x82\0\0\0\0\x03\xe8")
    assert ("WEBSOCKET /ws/{room}", 1000, 2) in server.stop()


@needs("fastapi", "uvicorn")
def test_a_client_that_disconnects_ends_its_request(serve):
    server = serve(FASTAPI, *UVICORN)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    assert server.get("/items/1")[0] == 200
    names = [name for name, _, _ in server.stop()]
    assert names == ["GET /items/{item_id}", "GET /stream"]


TASKS = (
    FASTAPI
    + """
from starlette.middleware.base import BaseHTTPMiddleware

class Nothing(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        with marey.record_function("dispatch"):
            pass
        return await call_next(request)

async def part(name):
    await asyncio.sleep(0)
    with marey.record_function(name):
        return name

@app.get("/gather/{name}")
async def gather(name: str):
    with marey.record_function("view"):
        pass
    return await asyncio.gather(part("gathered"), part("gathered"))

app.user_middleware.append(app.user_middleware[0].__class__(Nothing))
"""
)


@needs("fastapi", "uvicorn")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_tasks_in_fastapi_on_uvicorn(serve, loop):
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    server = serve(TASKS, *UVICORN, "--loop", loop)
    assert server.get("/gather/x") == (200, b'["gathered","gathered"]')
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(b"".join(b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in (b"gather/y", b"items/4")))
        received = b""
        while b'{"id":4}' not in received:
            received += client.recv(4096)
            assert received
    assert [name for name, _, _ in server.stop()] == ["GET /gather/{name}"] * 2 + ["GET /items/{item_id}"]
    # BaseHTTPMiddleware runs the application in a task.
    assert server.parents["dispatch"].endswith(" (running)")
    assert server.parents["view"] == server.parents["gathered"] == "GET /gather/{name} (in a task)"
    # uvicorn starts a request that was pipelined while it answers the one before.
    assert server.parents["GET /items/{item_id} (running)"] == "GET /items/{item_id} (in a task)"


WORKERS = {
    "gunicorn": (FLASK, [word if word != "1" else "4" for word in GUNICORN]),
    "uvicorn": (FASTAPI, [*UVICORN, "--workers", "4"]),
}


@pytest.mark.parametrize("name", WORKERS)
@needs("flask", "gunicorn", "fastapi", "uvicorn")
def test_four_workers_are_one_trace(serve, name):
    text, words = WORKERS[name]
    server = serve(text, *words)
    for number in range(40):
        status, body = server.get(f"/items/{number}")
        assert status == 200 and body.strip() == b'{"id":%d}' % number
    assert [status for _, status, _ in server.stop()] == [200] * 40
    assert server.process.returncode in (0, -signal.SIGTERM)
    (capture,) = server.folder.glob("out*.marey")
    processes = marey.load(capture).tables["processes"].to_pandas()
    assert 1 <= len(processes) <= 4  # a worker that served nothing leaves nothing, nor does their parent
    assert processes.ancestors.str.split().str[0].nunique() == 1  # they have one parent
    assert processes.tree.nunique() == 1 and processes.clock.nunique() == 1
