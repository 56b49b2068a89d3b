"""The global step: several things may count steps (profilers, optimizers); the highest count is the step."""

from marey._marey import step_mark
from marey._warnings import warn


class KinetoStepTracker:
    """Counts steps per requester. The global step is the maximum over them, and every rise of it puts one mark into
    every session that is alive.
    """

    _current_step = 0
    _step_dict = {}

    @classmethod
    def init_step_count(cls, requester):
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester):
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester):
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        highest = max(cls._step_dict.values())
        if highest > cls._current_step:
            rise = highest - cls._current_step
            if rise > 1:
                warn(
                    f"the step count rose by {rise} at once ({cls._current_step} to {highest}): "
                    f"a requester counts more than once per step: {cls._step_dict}"
                )
            for step in range(cls._current_step + 1, highest + 1):
                step_mark(step)
            cls._current_step = highest
        return cls._current_step

    @classmethod
    def current_step(cls):
        return cls._current_step
