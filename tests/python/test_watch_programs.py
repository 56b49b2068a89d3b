"""`marey watch` beside real servers and a training loop: each slow moment is in one snapshot, and nothing else is.

MAREY_SLOW_MOMENTS (3) of them, each among MAREY_USUAL_MOMENTS (150) others.
"""

import contextlib
import http.client
import importlib.util
import os
import re
import select
import signal
import socket
import subprocess
import sys

import pytest
from range_rows import range_rows
from running import environment

import marey

pytestmark = pytest.mark.skipif("MAREY_TEST_SANITIZER" in os.environ, reason="the servers load other programs")

SLOW = int(os.environ.get("MAREY_SLOW_MOMENTS", "3"))
USUAL = int(os.environ.get("MAREY_USUAL_MOMENTS", "150"))

FASTAPI = """
import asyncio
from fastapi import FastAPI
from marey.web import MareyMiddleware

app = FastAPI()
app.add_middleware(MareyMiddleware, secret="open sesame")

@app.get("/items/{item_id}")
async def item(item_id: int):
    await asyncio.sleep(0.5 if item_id == 0 else 0)
    return {"id": item_id}
"""
FLASK = """
import time
from flask import Flask
import marey.web

app = marey.web.flask_app(Flask(__name__), secret="open sesame")

@app.get("/items/<int:item_id>")
def item(item_id):
    if item_id == 0: time.sleep(0.5)
    return {"id": item_id}
"""
LOOP = """
import sys, time, marey
for number, line in enumerate(sys.stdin):
    with marey.record_function(f"ProfilerStep#{number}"):
        with marey.record_function("load"): time.sleep(0.5 if line == "0\\n" else 0.002)
        with marey.record_function("train"): time.sleep(0.001)
    print("done", flush=True)
"""


@contextlib.contextmanager
def recorded(folder, words, **options):
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "marey", "run", "-q", "-o", "out.marey", "--ring", *words],
            cwd=folder,
            env=environment(),
            stderr=log,
            start_new_session=True,
            **options,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):  # its workers too
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@contextlib.contextmanager
def server(folder, text, module, *words):
    """Yield a function that makes a request."""
    (folder / "site_under_test.py").write_text(text)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        file = listening.fileno()
        given = ["--no-calls", "-m", module, "site_under_test:app", *[word.format(fd=file) for word in words]]
        with recorded(folder, given, pass_fds=[file], stdout=subprocess.DEVNULL):
            connection = http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=60)

            def request(number):
                connection.request("GET", f"/items/{number}", headers={"Connection": "close"})
                assert connection.getresponse().read().strip() == f'{{"id":{number}}}'.encode()

            with contextlib.closing(connection):
                yield request


@contextlib.contextmanager
def uvicorn(folder):
    with server(folder, FASTAPI, "uvicorn", "--fd", "{fd}", "--log-level", "error") as request:
        yield request


@contextlib.contextmanager
def gunicorn(folder):
    with server(folder, FLASK, "gunicorn", "--bind", "fd://{fd}", "--workers=1", "--threads=2") as request:
        yield request


@contextlib.contextmanager
def loop(folder):
    (folder / "train.py").write_text(LOOP)
    with recorded(folder, ["train.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def step(number):
            process.stdin.write(b"%d\n" % number)
            process.stdin.flush()
            assert process.stdout.readline() == b"done\n"

        yield step


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


PROGRAMS = [
    pytest.param(uvicorn, "GET /items/* > 250ms", "GET /items/{item_id}", marks=needs("fastapi", "uvicorn")),
    pytest.param(gunicorn, "GET /items/* > 250ms", "GET /items/<int:item_id>", marks=needs("flask", "gunicorn")),
    pytest.param(loop, "step > 40x", "ProfilerStep#", id="loop"),
]


@pytest.mark.parametrize(("program", "condition", "name"), PROGRAMS)
def test_each_slow_moment_is_in_one_snapshot_with_the_time_before(tmp_path, program, condition, name):
    watch = [sys.executable, "-m", "marey", "watch", ".", "--when", condition, "--after", "0s", "--every", "0s"]
    with program(tmp_path) as once:
        for number in range(1, 20):
            once(number)
        watcher = subprocess.Popen(watch, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
        try:
            assert watcher.stderr.readline().startswith("marey: watching for ")
            for _ in range(SLOW):
                for number in range(1, USUAL + 1):
                    once(number)
                once(0)
                assert select.select([watcher.stderr], [], [], 60)[0], "there is no snapshot"
                check(tmp_path, watcher.stderr.readline(), name)
            watcher.send_signal(signal.SIGINT)
            assert watcher.communicate(timeout=60)[1] == ""
        finally:
            watcher.kill()
            watcher.communicate()


def check(folder, line, name):
    """The snapshot that the line is about holds all of the slow moment and others before it; then it is removed."""
    path = folder / re.match(r"marey: (\S+): ", line)[1]
    trace = marey.load(path)
    why = trace.metadata["snapshot"]
    slow, before = [], 0
    for row in range_rows(trace):
        if row["name"].startswith(name):
            begin, end = row["start_ns"], row["start_ns"] + row["duration_ns"]
            if end - begin > 490_000_000:
                slow.append((begin, end))
            before += end < why["begin_ns"]
    # The watcher had other readings of the clocks, so its times are a little different.
    about = pytest.approx((why["begin_ns"], why["end_ns"]), rel=0, abs=1_000_000)
    assert max(slow) == about, (slow, why)
    assert before > 10
    path.unlink()
