"""Records a program from its first line to its end, and the processes that it forks (``marey run``)."""

import atexit
import os
import sys

from marey._marey import begin_with_program, check_tracer, finish_recording, finish_with_interpreter, restart_recording

_ending = None


class _Ending:
    """Completes the capture of a multiprocessing child, which skips the interpreter's shutdown."""

    def __init__(self, util):
        util.register_after_fork(self, _Ending.register)

    def register(self):
        sys.modules["multiprocessing.util"].Finalize(None, finish_recording, exitpriority=-1000)


def _begin_in_child():
    global _ending
    restart_recording()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        _ending = _Ending(util)


def _end():
    """Complete the capture now after an unhandled KeyboardInterrupt.

    The signal then ends the process, and no later code runs.
    """
    check_tracer()
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        finish_with_interpreter()


def record():
    """Start to record. Called while the interpreter starts.

    Other processes of the program get their own captures. If the environment disables this, all settings are removed
    from the environment.
    """
    alone = os.environ.pop("MAREY_CHILDREN", "") == "0"
    if alone:
        os.environ.pop("MAREY_TORCH", None)
    atexit.register(_end)  # registered first, so called last
    begin_with_program(alone)
    if not alone:
        os.register_at_fork(after_in_child=_begin_in_child)
        return
    os.putenv("MAREY", os.environ.pop("MAREY"))  # read, and removed, when the program begins
    rest = os.environ.pop("PYTHONPATH").partition(os.pathsep)[2]
    if rest:
        os.environ["PYTHONPATH"] = rest
