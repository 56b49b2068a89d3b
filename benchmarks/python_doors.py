"""python_doors.py [PART ...]: the cost of the pytest plugin, the notebook magic and the web middleware, used and not.

The parts are imports, requests, pytest and picture. Times are CPU times, because other work on the machine changes the
others much more. Without pytest, its figures are left out.
"""

import asyncio
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 15


def figure(name, value, unit, against, against_value, target, ratio=None):
    line = {"name": name, "value": value, "unit": unit, "against": against, "against_value": against_value}
    print(json.dumps({**line, "ratio": ratio, "target": target}), flush=True)


def import_times(text):
    """Milliseconds that a statement takes after `import marey`, in a new interpreter."""
    program = (
        f"{text[0]}\nimport time\nbegin = time.process_time()\n{text[1]}\nprint((time.process_time() - begin) * 1e3)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return float(
        subprocess.run([sys.executable, "-c", program], check=True, env=environment, stdout=subprocess.PIPE).stdout
    )


def measure_imports():
    for name, text, target in (
        ("pytest_plugin_import", ("import pytest", "import marey_pytest"), "<= 1 ms"),
        ("web_import", ("import marey", "import marey.web"), "<= 3 ms"),
        ("notebook_import", ("import marey", "import marey.notebook"), "<= 5 ms"),
    ):
        if text[0] == "import pytest" and importlib.util.find_spec("pytest") is None:
            continue
        import_times(text)  # compiles the files
        figure(name, statistics.median(import_times(text) for _ in range(ROUNDS)), "ms", "", None, target)


# ---- pytest


class EmptyTest:
    """Runs a test that does nothing, through the hooks that pytest calls for its phases."""

    nodeid = "test_it.py::test_it"

    def __init__(self, hooks):
        self.hooks = hooks

    def pytest_runtest_protocol(self, item):
        self.hooks.pytest_runtest_setup(item=item)
        self.hooks.pytest_runtest_call(item=item)
        self.hooks.pytest_runtest_teardown(item=item, nextitem=None)
        return True

    def pytest_runtest_setup(self):
        pass

    pytest_runtest_call = pytest_runtest_teardown = pytest_runtest_setup


def test_us(manager, test, count=5_000):
    """Microseconds for a test. (A whole run of pytest takes some 300 us for each, which vary by more than the cost.)"""
    begin = time.thread_time_ns()
    for _ in range(count):
        manager.hook.pytest_runtest_protocol(item=test, nextitem=None)
    return (time.thread_time_ns() - begin) / count / 1e3


def measure_pytest():
    import _pytest.hookspec
    import pluggy

    import marey
    from marey_pytest.recording import Recording

    managers, tests = [], []
    for _ in range(2):
        manager = pluggy.PluginManager("pytest")
        manager.add_hookspecs(_pytest.hookspec)
        tests.append(EmptyTest(manager.hook))
        manager.register(tests[-1])
        managers.append(manager)
    recording = Recording.__new__(Recording)
    recording._each = False
    managers[1].register(recording)
    session = marey.Session()
    session.start()
    plain, recorded = [], []
    for _ in range(3 * ROUNDS):
        plain.append(test_us(managers[0], tests[0]))
        recorded.append(test_us(managers[1], tests[1]))
    session.discard()
    added = statistics.median(b - a for a, b in zip(plain, recorded))
    figure("pytest_test", added, "us", "hooks of an empty test", statistics.median(plain), "<= 5 us")


# ---- requests


class Empty:
    """A middleware that does nothing."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)


START = {"type": "http.response.start", "status": 200, "headers": []}
BODY = {"type": "http.response.body", "body": b"hello"}


async def hello(scope, receive, send):
    await send(START)
    await send(BODY)


async def send(message):
    pass


def request_ns(app, count=5_000):
    """Nanoseconds for a request."""

    class Route:
        path = "/items/{id}"

    scope = {"type": "http", "method": "GET", "path": "/items/1", "headers": [], "query_string": b"", "route": Route}

    async def main():
        begin = time.thread_time_ns()
        for _ in range(count):
            await app(scope, None, send)
        return (time.thread_time_ns() - begin) / count

    return asyncio.run(main())


def measure_requests():
    import marey
    from marey.web import MareyMiddleware

    empty, wrapped = Empty(hello), MareyMiddleware(hello)
    idle, recording, floor = [], [], []
    for _ in range(3 * ROUNDS):
        floor.append(request_ns(empty))
        idle.append(request_ns(wrapped))
        session = marey.Session()
        session.start()
        recording.append(request_ns(wrapped))
        session.discard()
    base = statistics.median(floor)
    for name, times, target in (("web_request_idle", idle, "<= 150 ns"), ("web_request", recording, "<= 5000 ns")):
        figure(name, statistics.median(b - a for a, b in zip(floor, times)), "ns", "empty middleware", base, target)


def measure_picture():
    import marey
    from marey.results.notebook_page import inline_flame_graph

    events = []
    for n in range(3000):
        for depth in range(8):
            events.append(marey.FunctionEvent(8 * n + depth, f"function {n} {depth}", 1, 100 * n, 100 * n + 99 - depth))
    size = len(inline_flame_graph(marey.EventList(events)._trace()).encode())
    figure("notebook_picture", size / 1000, "kB", "", None, "<= 150 kB")


def main():
    # Recorded requests take 0.2 to 0.5 us longer here than in a process of their own (`python_doors.py requests`), as
    # soon as pytest is imported, whether or not a test has run.
    parts = {"imports": measure_imports, "pytest": measure_pytest, "requests": measure_requests}
    parts["picture"] = measure_picture
    for name in sys.argv[1:] or parts:
        if name != "pytest" or importlib.util.find_spec("pytest") is not None:
            parts[name]()


if __name__ == "__main__":
    main()
