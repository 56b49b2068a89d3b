"""Threads that work for Marey itself: no session records them."""

from __future__ import annotations

import _thread

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class OwnThread:
    """Runs a function in a daemon thread. Without ``threading``, whose own calls would be recorded."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._running = _thread.allocate_lock()
        self._running.acquire()
        _thread.start_new_thread(self._run, (function, args))

    def _run(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        _marey.become_own_thread()
        try:
            function(*args)
        finally:
            self._running.release()

    def join(self, timeout: float) -> bool:
        """Wait until the function has returned, at most `timeout` seconds; return whether it has."""
        ended = self._running.acquire(timeout=timeout)
        if ended:
            self._running.release()
        return ended
