"""The recording cycles of a profiler: what happens between one action and the next."""

from kymo._schedule import ProfilerAction
from kymo._warnings import warn

_NONE, _WARMUP = ProfilerAction.NONE, ProfilerAction.WARMUP
_RECORD, _SAVE = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE
_EXIT = None

# What to do, in order, when the action changes. "wrong" warns that no sensible schedule says that.
TRANSITIONS = {
    (_NONE, _NONE): (),
    (_NONE, _WARMUP): ("prepare",),
    (_NONE, _RECORD): ("prepare", "start"),
    (_NONE, _SAVE): ("prepare", "start"),
    (_NONE, _EXIT): (),
    (_WARMUP, _NONE): ("wrong", "start", "stop"),
    (_WARMUP, _WARMUP): (),
    (_WARMUP, _RECORD): ("start",),
    (_WARMUP, _SAVE): ("start",),
    (_WARMUP, _EXIT): ("start", "stop"),
    (_RECORD, _NONE): ("wrong", "stop"),
    (_RECORD, _WARMUP): ("wrong", "stop", "prepare"),
    (_RECORD, _RECORD): (),
    (_RECORD, _SAVE): (),
    (_RECORD, _EXIT): ("stop", "ready"),
    (_SAVE, _NONE): ("stop", "ready"),
    (_SAVE, _WARMUP): ("stop", "ready", "prepare"),
    (_SAVE, _RECORD): ("stop", "ready", "prepare", "start"),
    (_SAVE, _SAVE): ("stop", "ready", "prepare", "start"),
    (_SAVE, _EXIT): ("stop", "ready"),
}


class Cycle:
    """Runs the transitions of one profiler. `actions` maps "prepare", "start", "stop" and "ready" to functions."""

    def __init__(self, actions):
        self._actions = actions
        self.current = ProfilerAction.NONE

    def move_to(self, action):
        """To the action of the next step, or to None: the end."""
        before, self.current = self.current, action if action is not None else ProfilerAction.NONE
        failure = None
        for name in TRANSITIONS[before, action]:
            if name == "wrong":
                warn(f"incorrect schedule: {before.name} followed by {action.name}", stacklevel=5)
                continue
            try:
                self._actions[name]()
            except BaseException as error:
                if name != "ready":  # recording itself does not work: nothing more can be done here
                    self.current = ProfilerAction.NONE
                    raise
                failure = error  # the user's callback: the next cycle begins all the same
        if failure is not None:
            raise failure
