"""Converts PyTorch's activities and options to Marey's, since a program may mix both."""

from __future__ import annotations

import torch

from marey._enumerations import ProfilerActivity
from marey.compat.config import _ExperimentalConfig
from marey.recording import activities
from marey.recording.schedule import ProfilerAction
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
    if isinstance(item, _TORCH_ACTIVITY):
        return ProfilerActivity[item.name]
    if isinstance(item, dict):
        return {to_marey_activity(key): value for key, value in item.items()}
    return item


def to_marey_activities(items: Iterable[Any] | None) -> list[Any] | None:
    if items is None:
        return None
    own = [to_marey_activity(item) for item in items]
    if not own and torch.__version__ >= (2, 13):  # in older versions an empty list means all
        raise AssertionError("No valid profiler activities found")
    return own


def to_marey_config(config: Any) -> _ExperimentalConfig | None:
    """Convert PyTorch's experimental options to Marey's."""
    if isinstance(config, torch._C._profiler._ExperimentalConfig):
        config = _ExperimentalConfig(*config.__getstate__())
    own: _ExperimentalConfig | None = config
    return own


def to_marey_schedule(schedule: Callable[[int], Any] | None) -> Callable[[int], ProfilerAction] | None:
    """Return a schedule that returns Marey's actions even if this one returns PyTorch's."""
    if not callable(schedule):
        return schedule

    def own(step: int) -> ProfilerAction:
        action = schedule(step)
        return ProfilerAction[action.name] if isinstance(action, _TORCH_ACTION) else action

    return own
