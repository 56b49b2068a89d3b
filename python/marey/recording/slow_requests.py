"""Keeps the calls of slow requests: a recording in memory that overwrites its oldest part, and files cut from it."""

from __future__ import annotations

import heapq
import os
import sys
import threading
import time

from marey import _marey
from marey._own_threads import OwnThread
from marey._text import duration_ns
from marey._warnings import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from queue import SimpleQueue

_MAX_WAITING = 4  # slow requests that wait to be written; further ones are skipped and counted


class SlowRequests:
    """Records all calls of the process, from the first request on, and writes those of slow requests to a folder."""

    def __init__(self, folder: str, over: str | float | None, slowest: int, max_bytes: int) -> None:
        if over is not None and not isinstance(over, str):
            over = f"{over}s"
        if not isinstance(slowest, int) or slowest < 0:
            raise ValueError(f"slowest must be a number of requests, not {slowest!r}")
        self._folder = os.path.abspath(folder)
        os.makedirs(self._folder, exist_ok=True)
        self._over_ns = duration_ns(over) if over is not None else float("inf")
        self._slowest = slowest
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: list[tuple[int, str]] = []  # a heap of (duration, path), at most `slowest`; guarded by the lock
        self._session: _marey.Session | None = None
        self._pid = 0  # of the process that records; a forked one starts again
        self._number = 0
        self.skipped = 0

    def begin(self) -> int:
        """Return the time at which a request begins."""
        if self._pid != os.getpid():
            self._start()
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

    def end(self, begin: int, name: str, values: Mapping[str, str]) -> None:
        """End a request; keep its calls if it was slow, with `values` as metadata."""
        if self._session is None:
            return
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        duration = end - begin
        is_over = duration > self._over_ns
        if not is_over and not self._is_among_slowest(duration):
            return
        if self._queue.qsize() >= _MAX_WAITING:
            self.skipped += 1
            return
        self._queue.put((begin, end, name, values, is_over))

    def wait(self) -> None:
        """Wait until all slow requests so far are written."""
        done = threading.Event()
        self._queue.put(done)
        done.wait()

    def _is_among_slowest(self, duration: int) -> bool:
        with self._lock:
            return len(self._kept) < self._slowest or bool(self._kept and duration > self._kept[0][0])

    def _start(self) -> None:
        with self._lock:
            if self._pid == os.getpid():
                return
            from queue import SimpleQueue

            self._session = _marey.Session()
            try:
                self._session.start(
                    name="slow requests",
                    with_stack=True,
                    c_calls=sys.version_info >= (3, 12),
                    policy="ring",
                    max_bytes=self._max_bytes,
                )
            except _marey.Error as error:
                warn(f"slow requests are not kept: {error}")
                self._session = None
            self._kept = []
            self._queue: SimpleQueue[tuple[int, int, str, Mapping[str, str], bool] | threading.Event] = SimpleQueue()
            self._pid = os.getpid()
            if self._session is not None:
                OwnThread(self._write_all)

    def _write_all(self) -> None:
        while True:
            request = self._queue.get()
            if isinstance(request, threading.Event):
                request.set()
                continue
            try:
                self._write(*request)
            except Exception as error:  # a full disk, say; the requests go on
                self.skipped += 1
                warn(f"a slow request could not be kept: {error}")

    def _write(self, begin: int, end: int, name: str, values: Mapping[str, str], is_over: bool) -> None:
        assert self._session is not None
        part = self._session.snapshot()._selected(begin, end, []).filtered(fold_imports=True)
        self._number += 1
        path = os.path.join(self._folder, _file_name(end - begin, name, self._number))
        part = part.with_metadata("request", name)
        for key, text in values.items():
            part = part.with_metadata(key, text)
        part.save(path)
        with self._lock:
            if is_over:
                return
            heapq.heappush(self._kept, (end - begin, path))
            dropped = heapq.heappop(self._kept)[1] if len(self._kept) > self._slowest else None
        if dropped is not None:
            os.unlink(dropped)


def _file_name(duration: int, name: str, number: int) -> str:
    """Return "000512ms-GET-users-id-4711-1.marey": files sort by duration."""
    plain = "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in name).split())[:80]
    return f"{duration // 1_000_000:06}ms-{plain}-{os.getpid()}-{number}.marey"
