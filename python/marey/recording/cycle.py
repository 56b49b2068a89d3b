"""The recording cycle of a profiler: the transitions from one action to the next."""

from __future__ import annotations

from marey._marey import Error
from marey._warnings import warn
from marey.recording.schedule import ProfilerAction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NONE, _WARMUP = ProfilerAction.NONE, ProfilerAction.WARMUP
_RECORD, _SAVE = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE
_STOPPED = ProfilerAction.DEVICE_STOPPED
_EXIT = None

# The calls to make, in order, when the action changes. "wrong" warns about a schedule that makes no sense.
TRANSITIONS = {
    (_NONE, _NONE): (),
    (_NONE, _WARMUP): ("prepare", "warm_up"),
    (_NONE, _RECORD): ("prepare", "start"),
    (_NONE, _SAVE): ("prepare", "start"),
    (_NONE, _EXIT): (),
    (_WARMUP, _NONE): ("wrong", "start", "stop"),
    (_WARMUP, _WARMUP): (),
    (_WARMUP, _RECORD): ("start",),
    (_WARMUP, _SAVE): ("start",),
    (_WARMUP, _EXIT): ("start", "stop"),
    (_RECORD, _NONE): ("wrong", "stop"),
    (_RECORD, _WARMUP): ("wrong", "stop", "prepare", "warm_up"),
    (_RECORD, _RECORD): (),
    (_RECORD, _SAVE): (),
    (_RECORD, _EXIT): ("stop", "ready"),
    (_SAVE, _NONE): ("stop", "ready"),
    (_SAVE, _WARMUP): ("stop", "ready", "prepare", "warm_up"),
    (_SAVE, _RECORD): ("stop", "ready", "prepare", "start"),
    (_SAVE, _SAVE): ("stop", "ready", "prepare", "start"),
    (_SAVE, _EXIT): ("stop", "ready"),
    # Hands over the device records at once; the rest of the cycle is skipped.
    (_WARMUP, _STOPPED): ("start", "stop", "ready"),
    (_RECORD, _STOPPED): ("stop", "ready"),
    (_STOPPED, _STOPPED): (),
    (_STOPPED, _NONE): (),
    (_STOPPED, _WARMUP): ("prepare", "warm_up"),
    (_STOPPED, _RECORD): ("prepare", "start"),
    (_STOPPED, _SAVE): ("prepare", "start"),
    (_STOPPED, _EXIT): (),
}
_METHODS = {
    "prepare": "prepare_trace",
    "warm_up": "_begin_warm_up",
    "start": "start_trace",
    "stop": "stop_trace",
    "ready": "_trace_ready",
}


class Cycle:
    """The current action of one profiler.

    Each move receives the profiler, and no reference to it is kept: profilers and their traces are freed with their
    last reference, without waiting for the garbage collector.
    """

    def __init__(self) -> None:
        self.current = ProfilerAction.NONE
        self._scheduled = ProfilerAction.NONE

    def move_to(self, action: ProfilerAction | None, profiler: Any, device_has_stopped: bool = False) -> None:
        """Move to the action that the schedule chose for the next step, or to None at the end.

        If the device's recorder has stopped, the records so far are handed over, and recording resumes with the next
        cycle.
        """
        scheduled_before, self._scheduled = self._scheduled, action if action is not None else ProfilerAction.NONE
        if action not in (None, _NONE):
            is_next_cycle = scheduled_before is _SAVE
            if self.current is _STOPPED and not is_next_cycle:
                action = _STOPPED
            elif device_has_stopped and self.current in (_WARMUP, _RECORD):
                action = _STOPPED
        self._run(action, profiler)

    def _run(self, action: ProfilerAction | None, profiler: Any) -> None:
        if (self.current, action) not in TRANSITIONS:
            raise Error(f"invalid transition from {self.current.name} to {getattr(action, 'name', None)}")
        before, self.current = self.current, action if action is not None else ProfilerAction.NONE
        failure = None
        for name in TRANSITIONS[before, action]:
            if name == "wrong":
                warn(f"incorrect schedule: {before.name} followed by {self.current.name}", stacklevel=5)
                continue
            try:
                getattr(profiler, _METHODS[name])()
            except BaseException as error:
                if name != "ready":  # recording itself failed
                    self.current = ProfilerAction.NONE
                    raise
                failure = error  # the user's callback failed: the next cycle starts nevertheless
        if failure is not None:
            raise failure
