"""Converts PyTorch's activities and options to Marey's, since a program may mix both."""

from __future__ import annotations

import torch

from marey._enumerations import ProfilerActivity
from marey.recording import activities
from marey.recording.schedule import ProfilerAction
from marey.torch import _versions
from marey.torch._types import Types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_TORCH_ACTIVITY = torch.profiler.ProfilerActivity
_TORCH_ACTION = torch.profiler.ProfilerAction


def supported_activities() -> set[Any]:
    """Return the activities that can be recorded on this machine."""
    return {Types.activity(activity) for activity in activities.supported_activities()}


def to_marey_activity(item: Any) -> Any:
    """Return Marey's activity for one of PyTorch's; other values are returned unchanged."""
    return ProfilerActivity[item.name] if isinstance(item, _TORCH_ACTIVITY) else item


def to_marey_activities(items: Iterable[Any] | None) -> tuple[list[Any] | None, dict[Any, Any]]:
    """Return (Marey's activities, configurations of activities by PyTorch's activity)."""
    if items is None:
        return None, {}
    own: list[Any] = []
    configs = {}
    for item in items:
        if not isinstance(item, dict):
            own.append(to_marey_activity(item))
            continue
        for activity, value in item.items():
            configs[activity] = config = _versions.activity_config(value)
            types = config.activity_types
            own.append(to_marey_activity(activity) if types is None else {to_marey_activity(activity): types})
    if not own and _versions.REFUSES_EMPTY_ACTIVITIES:
        raise AssertionError("No valid profiler activities found")
    return own, configs


def to_marey_schedule(schedule: Callable[[int], Any] | None) -> Callable[[int], ProfilerAction] | None:
    """Return a schedule that returns Marey's actions even if this one returns PyTorch's."""
    if not callable(schedule):
        return schedule

    def own(step: int) -> ProfilerAction:
        action = schedule(step)
        return ProfilerAction[action.name] if isinstance(action, _TORCH_ACTION) else action

    return own
