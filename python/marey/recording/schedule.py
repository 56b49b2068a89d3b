"""The actions of a profiler, and schedules that choose one for each step."""

from __future__ import annotations

from enum import Enum

from marey._marey import Error
from marey._warnings import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class ProfilerAction(Enum):
    """The action of a profiler during a step."""

    __hash__ = object.__hash__  # in C: a lookup does not appear as a call in traces

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4  # the device's recorder has stopped; not for schedules


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule for ``marey.profile``: a function from step numbers to actions.

    Args:
        wait: The idle steps at the start of each cycle.
        warmup: The steps with the profiler prepared.
        active: The recorded steps.
        repeat: The number of cycles; 0 for no limit.
        skip_first: The steps to skip before the first cycle.
        skip_first_wait: If not 0, the first cycle has no idle steps.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise Error(
            "invalid schedule: wait, warmup, repeat and skip_first must not be negative and active must be positive, "
            f"got wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, skip_first={skip_first}"
        )
    if warmup == 0:
        warn("a schedule without warm-up steps: the first recorded step includes the time to start the profiler")
    cycle = wait + warmup + active

    def action_of(step: int) -> ProfilerAction:
        if step < 0:
            raise Error(f"steps are counted from 0, got {step}")
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


def always_record(step: int) -> ProfilerAction:
    """Record every step: the default schedule."""
    return ProfilerAction.RECORD
