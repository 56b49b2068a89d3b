"""When to record: the actions of a profiler, and the schedule that chooses one for every step."""

from enum import Enum

from marey._marey import Error
from marey._warnings import warn


class ProfilerAction(Enum):
    """What a profiler does during a step."""

    __hash__ = object.__hash__  # in C: looking one up is no call that a trace would show

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4  # the device's own recorder has given up; never by a schedule


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A schedule for ``marey.profile``: skips ``skip_first`` steps, then repeats a cycle of ``wait`` idle steps,
    ``warmup`` steps with the profiler prepared and ``active`` recorded ones, ``repeat`` times (0: for ever).
    With ``skip_first_wait`` the first cycle has no idle steps.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise Error(
            "invalid schedule: wait, warmup, repeat and skip_first must not be negative and active must be positive, "
            f"not wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, skip_first={skip_first}"
        )
    if warmup == 0:
        warn("a schedule without warm-up steps: the first recorded step pays for starting the profiler")
    cycle = wait + warmup + active

    def action_of(step):
        if step < 0:
            raise Error(f"steps count from 0, not from {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action_of


def always_record(step):
    """The schedule of a profiler that was given none."""
    return ProfilerAction.RECORD
