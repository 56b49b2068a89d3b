"""The global step: the highest count among all that count steps (profilers, optimizers)."""

from __future__ import annotations

from marey._marey import step_mark
from marey._warnings import warn


class KinetoStepTracker:
    """Counts steps for each requester.

    The global step is the highest of these counts. Each increase adds one mark to every running session.
    """

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begin to count for a requester, from the current step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a requester; return False if it was unknown."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of a requester and return the global step."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        highest = max(cls._step_dict.values())
        if highest > cls._current_step:
            rise = highest - cls._current_step
            if rise > 1:
                warn(
                    f"the step count increased by {rise} at once ({cls._current_step} to {highest}): "
                    f"a requester counts more than once per step: {cls._step_dict}"
                )
            for step in range(cls._current_step + 1, highest + 1):
                step_mark(step)
            cls._current_step = highest
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """Return the global step."""
        return cls._current_step
