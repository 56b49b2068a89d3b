"""``pytest --marey``: each test is a range with its phases and fixtures inside; xdist's workers are merged."""

from __future__ import annotations

import os
import sys

import pytest

import marey
from marey import _marey

# Loaded now, because a test may remove modules from sys.modules or change the working directory.
from marey._warnings import warn
from marey_pytest import packages, report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

TEST_PREFIX = "test "  # test ranges are named "test tests/test_cart.py::test_total"


class Recording:
    """Records a run of pytest. One for each process: without xdist, or its controller, or one of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder = os.path.abspath(config.option.marey_out) if config.option.marey_out else ""
        self._each = bool(config.option.marey_each)
        self._worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._options: dict[str, Any] = {} if config.option.marey_no_calls else _call_options(config)
        self._session: marey.Session | None = None
        self._pid = 0  # of the process that started the session
        self._worker_folder = ""  # of the captures of xdist's workers
        self._fixtures: dict[Any, Any] = {}  # the teardown ranges that are open, by fixture definition
        self._modules = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "marey"}
        if self._folder and self._worker is None:
            try:
                os.makedirs(self._folder, exist_ok=True)
            except OSError as error:
                raise pytest.UsageError(f"--marey-out: cannot create {self._folder}: {error.strerror}") from None

    # ---- the session

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        is_controller = self._config.pluginmanager.hasplugin("dsession")
        output = ""
        if self._worker is not None:
            output = os.path.join(self._worker["marey_folder"], f"{self._worker['workerid']}.marey")
        elif self._folder and not self._each and not is_controller:
            output = os.path.join(self._folder, "pytest.marey")
        session = marey.Session()
        try:
            session.start(name="pytest", output=output, **({} if is_controller else self._options))
        except marey.Error as error:
            raise pytest.UsageError(f"--marey: {error}") from None
        self._session, self._pid = session, os.getpid()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist where to record."""
        if not self._worker_folder:
            import tempfile

            self._worker_folder = tempfile.mkdtemp(prefix=".workers-", dir=self._folder or None)
        node.workerinput["marey_folder"] = self._worker_folder

    def pytest_sessionfinish(self) -> None:
        if self._worker is not None and self._session is not None and self._pid == os.getpid():
            session, self._session = self._session, None
            session.discard()  # completes the capture, which the controller reads

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        finished = self._finish()
        if finished is not None:
            trace, path = finished
            report.show(terminalreporter, trace, path, self._config.option.marey_tests)

    def pytest_unconfigure(self) -> None:
        self._finish()

    def _finish(self) -> tuple[marey.Trace, str] | None:
        """Stop recording and return the trace and the path of its file, or "". None if that was done already."""
        session, self._session = self._session, None
        if session is None or self._pid != os.getpid():
            return None
        self._restore_modules()
        for name in _captures(self._worker_folder):
            capture = os.path.join(self._worker_folder, name)
            try:
                _marey.add_capture(session, capture)
            except marey.Error as error:
                if self._folder:
                    os.replace(capture, _free_path(os.path.join(self._folder, name)))
                warn(f"the recording of xdist's worker {name.removesuffix('.marey')} is not in the report: {error}")
        path = session.output_path
        trace = session.stop()
        if self._worker_folder and self._folder and not self._each:
            path = _free_path(os.path.join(self._folder, "pytest.marey"))
            trace.save(path)
        if self._worker_folder:
            import shutil

            shutil.rmtree(self._worker_folder, ignore_errors=True)
        return trace, self._folder if self._each else path

    def _restore_modules(self) -> None:
        """Undo what a test has done to sys.modules: a second copy of the package would not work."""
        for name, module in self._modules.items():
            sys.modules.setdefault(name, module)

    # ---- tests

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        with marey.record_function("collection"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if self._each:
            return (yield from self._record_alone(item))
        with marey.record_function(TEST_PREFIX + item.nodeid):
            return (yield)

    def _record_alone(self, item: pytest.Item) -> Generator[None, Any, Any]:
        session = marey.Session()
        pid = os.getpid()
        session.start(
            name=item.nodeid,
            output=os.path.join(self._folder, _file_name(item.nodeid)),
            **self._options,
        )
        try:
            with marey.record_function(TEST_PREFIX + item.nodeid):
                return (yield)
        finally:
            if pid == os.getpid():
                session.discard()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        with marey.record_function("setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        with marey.record_function("call"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        try:
            with marey.record_function("teardown"):
                return (yield)
        finally:
            if "marey._marey" not in sys.modules:
                self._restore_modules()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        if getattr(fixturedef.func, "__name__", "") == "get_direct_param_fixture_func":  # an argument of parametrize
            return (yield)
        with marey.record_function(f"fixture {fixturedef.argname}"):
            try:
                return (yield)
            finally:
                # Finalizers run in reverse order: this one before those that the fixture has added itself.
                fixturedef.addfinalizer(lambda: self._begin_teardown(fixturedef))

    def _begin_teardown(self, fixturedef: Any) -> None:
        teardown = marey.record_function(f"fixture {fixturedef.argname} (teardown)")
        teardown.__enter__()
        self._fixtures[fixturedef] = teardown

    def pytest_fixture_post_finalizer(self, fixturedef: Any) -> None:
        teardown = self._fixtures.pop(fixturedef, None)
        if teardown is not None:
            teardown.__exit__(None, None, None)


def _call_options(config: pytest.Config) -> dict[str, Any]:
    """Return the session options for calls: those of pytest and of libraries are folded, except the tested ones.

    execnet connects xdist's workers: its threads wait for the whole run. coverage calls functions for each file.
    """
    _marey.count_as_program(packages.tested(config))
    c_calls = sys.version_info >= (3, 12)  # as `marey run`
    return {
        "with_stack": True,
        "fold_libraries": True,
        "c_calls": c_calls,
        "exclude": ["marey_pytest", "execnet", "coverage"],
    }


def _captures(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".marey")) if folder else []


def _file_name(nodeid: str) -> str:
    """Return a file name for a test. Different tests may have the same: no file is ever overwritten."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in nodeid.replace("::", "."))
    plain = plain.encode("ascii", "replace").decode().replace("?", "_").lstrip(".")
    return f"{plain[-120:]}.marey"


def _free_path(path: str) -> str:
    """Return the path, with a number before its suffix if there is such a file."""
    stem, suffix = os.path.splitext(path)
    number = 2
    while os.path.exists(path):
        path = f"{stem}.{number}{suffix}"
        number += 1
    return path
