"""Records all the time, keeps the last seconds, and writes them to a file when something happens."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
import time

from marey import _marey
from marey._own_threads import OwnThread
from marey._warnings import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType, TracebackType
    from typing import Any

_current: FlightRecorder | None = None


def flight_recorder(
    *,
    last: float = 30,
    when: Iterable[str] = (),
    folder: str | os.PathLike[str] = ".",
    after: float = 1,
    every: float = 60,
    keep: int | None = None,
    disk: str | None = None,
    exceptions: bool = True,
    signal_number: int | None = signal.SIGUSR2,
    max_bytes: int = 256 << 20,
    **session_options: Any,
) -> FlightRecorder:
    """Record this program from now on, keep the last seconds, and write them as a capture when something happens.

    There is one flight recorder in a process. It is also a context manager, which stops it at the end.

    Args:
        last: How many seconds to keep.
        when: Conditions as those of ``marey watch``, such as "handle > 250ms". Another process watches for them.
        folder: Where the captures are written.
        after: How many seconds to go on before such a capture is written.
        every: At most one capture of a condition in this many seconds.
        keep: Delete the oldest captures of conditions if there are more than this.
        disk: Delete the oldest captures of conditions if they have more bytes, such as "2GB".
        exceptions: Whether to write a capture when nothing handles an exception.
        signal_number: The signal to write a capture at, unless the program handles it; None for no signal.
        max_bytes: The most bytes of records to keep.
        session_options: As those of ``marey.profile``.
    """
    global _current
    if _current is not None and _current.is_running:
        raise _marey.Error("a flight recorder is running: there is one in a process")
    recorder = FlightRecorder(last, os.path.abspath(folder))
    recorder._start({"max_bytes": max_bytes, **session_options}, exceptions, signal_number)
    _current = recorder
    try:
        recorder._watch(when, after, every, keep, disk)
    except BaseException:
        recorder.stop()
        raise
    return recorder


def snapshot(reason: str = "", path: str | os.PathLike[str] | None = None, *, last: float | None = None) -> str:
    """Write what is being recorded as a capture, and return its path.

    It is that of the flight recorder, or of ``marey run``. `last`: only that many seconds.
    """
    if _current is not None and _current.is_running:
        return _current.snapshot(reason, path, last=last)
    captures = _marey.own_captures()
    if not captures:
        raise _marey.Error("nothing is recorded into a file: use marey.flight_recorder(), or marey run")
    return _write(captures[0], os.path.dirname(captures[0]), reason, path, last or 0)


def _write(capture: str, folder: str, reason: str, path: str | os.PathLike[str] | None, last: float) -> str:
    if path is None:
        stem = os.path.basename(capture).removesuffix(".marey")
        base = target = os.path.join(folder, time.strftime(f"{stem}.%Y%m%dT%H%M%S.snapshot"))
        number = 1
        while os.path.exists(target + ".marey"):
            number += 1
            target = f"{base}-{number}"
        target += ".marey"
    else:
        target = os.fspath(path)
    _marey.write_snapshot(capture, target, int(last * 1e9), reason)
    return target


class FlightRecorder:
    """A recording of the last seconds; see ``marey.flight_recorder``."""

    def __init__(self, last: float, folder: str) -> None:
        self.last = last
        self.folder = folder
        self.path = ""  #: the file that holds the last seconds: its own, which goes when it stops, or of `marey run`
        self._session = _marey.Session()
        self._pid = os.getpid()
        self._excepthook = sys.excepthook
        self._thread_excepthook = threading.excepthook
        self._signal_number: int | None = None

    @property
    def is_running(self) -> bool:
        return self._pid == os.getpid() and self._session.is_running

    def snapshot(
        self, reason: str = "", path: str | os.PathLike[str] | None = None, *, last: float | None = None
    ) -> str:
        """Write the last seconds as a capture, and return its path."""
        if not self.is_running:
            raise _marey.Error("this flight recorder does not run")
        return _write(self.path, self.folder, reason, path, self.last if last is None else last)

    def stop(self) -> None:
        """Stop, and delete what was not written."""
        if not self.is_running:
            return
        own = self._session.output_path
        self._session.discard()
        if os.path.exists(own):
            os.unlink(own)
        atexit.unregister(self.stop)
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._excepthook
        if threading.excepthook == self._on_thread_exception:
            threading.excepthook = self._thread_excepthook
        if self._signal_number is not None and signal.getsignal(self._signal_number) == self._on_signal:
            signal.signal(self._signal_number, signal.SIG_DFL)

    def __enter__(self) -> FlightRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and self.is_running and sys.excepthook == self._on_exception:
            self._keep_exception(error)
        self.stop()

    def _start(self, options: dict[str, Any], exceptions: bool, signal_number: int | None) -> None:
        program = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0] or "python"
        output = os.path.join(self.folder, f"{program}.{self._pid}.flight.marey")
        settings: dict[str, Any] = {
            "name": "flight recorder",
            "with_stack": True,
            "c_calls": sys.version_info >= (3, 12),
        }
        self._session.start(**{**settings, **options, "last": self.last, "output": output})
        self.path = _marey.own_captures()[0]
        atexit.register(self.stop)
        if exceptions:
            sys.excepthook = self._on_exception
            threading.excepthook = self._on_thread_exception
        if (
            signal_number is not None
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal_number) == signal.SIG_DFL
        ):
            signal.signal(signal_number, self._on_signal)
            self._signal_number = signal_number

    def _watch(self, when: Iterable[str], after: float, every: float, keep: int | None, disk: str | None) -> None:
        conditions = [when] if isinstance(when, str) else list(when)
        if not conditions:
            return
        command = [sys.executable, "-m", "marey", "watch", "--background", self.path, "-o", self.folder]
        for condition in conditions:
            command += ["--when", condition]
        command += [f"--{name}={int(seconds * 1e9)}ns" for name, seconds in
                    (("last", self.last), ("after", after), ("every", every))]  # fmt: skip
        command += [f"--{name}={value}" for name, value in (("keep", keep), ("disk", disk)) if value is not None]
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAREY")}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, environment.get("PYTHONPATH")]))
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise ValueError(done.stderr.strip().removeprefix("marey: ").removeprefix("watch: "))

    def _on_exception(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, Exception):
            self._keep_exception(error)
        self._excepthook(kind, error, traceback)

    def _on_thread_exception(self, arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None and issubclass(arguments.exc_type, Exception):
            self._keep_exception(arguments.exc_value)
        self._thread_excepthook(arguments)

    def _keep_exception(self, error: BaseException) -> None:
        if not self.is_running:
            return
        kind = type(error).__name__
        try:
            text = str(error)
        except Exception:  # the program's own __str__
            text = ""
        _marey.message_instant(f"exception {kind}", text, "")
        self._try_snapshot(f"{kind}: {text}" if text else kind)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_running:
            OwnThread(self._try_snapshot, signal.Signals(number).name)

    def _try_snapshot(self, reason: str) -> None:
        try:
            path = self.snapshot(reason)
        except (OSError, _marey.Error) as error:  # a full disk, say; the program goes on
            warn(f"there is no snapshot of {reason}: {error}")
        else:
            print(f"marey: {path}: the last {self.last:g} s, because {reason}", file=sys.stderr)
