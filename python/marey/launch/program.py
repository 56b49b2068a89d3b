"""Records a program from its first line to its end, and the processes that it forks (``marey run``)."""

from __future__ import annotations

import atexit
import os
import sys

from marey import _marey
from marey._imports import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ending = None


class _Ending:
    """Completes the capture of a multiprocessing child, which skips the interpreter's shutdown."""

    def __init__(self, util: Any) -> None:
        util.register_after_fork(self, _Ending.register)

    def register(self) -> None:
        sys.modules["multiprocessing.util"].Finalize(None, _marey.finish_recording, exitpriority=-1000)


def _begin_in_child() -> None:
    global _ending
    _marey.restart_recording()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        _ending = _Ending(util)


def _end() -> None:
    """Complete the capture now after an unhandled KeyboardInterrupt.

    The signal then ends the process, and no later code runs.
    """
    _marey.check_tracer()
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        _marey.finish_with_interpreter()


def _follow_messages() -> None:
    from marey import _messages

    _messages.follow()


def record() -> None:
    """Start the session set by the environment. Called while the interpreter starts.

    If it records calls, it starts with the program. Other processes of the program get their own captures. If the
    environment disables this, all settings are removed from the environment.
    """
    alone = os.environ.get("MAREY_CHILDREN", "") == "0"
    if not alone:
        _marey.report_child_waits()
    if _marey.begin_without_calls():
        return
    os.environ.pop("MAREY_CHILDREN", None)
    if alone:
        os.environ.pop("MAREY_TORCH", None)
    atexit.register(_end)  # registered first, so called last
    _marey.begin_with_program(alone)
    if not alone:
        os.register_at_fork(after_in_child=_begin_in_child)
        when_imported("multiprocessing.reduction", _follow_messages)
        return
    os.putenv("MAREY", os.environ.pop("MAREY"))  # read, and removed, when the program begins
    rest = os.environ.pop("PYTHONPATH").partition(os.pathsep)[2]
    if rest:
        os.environ["PYTHONPATH"] = rest
