"""Counts optimizer steps as steps of the program while a profiler records."""

from __future__ import annotations

from torch.optim.optimizer import register_optimizer_step_post_hook

from marey.compat.steps import KinetoStepTracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_REQUESTER = "Optimizer"
_watching = 0
_hook: Any = None


def _count(optimizer: Any, args: Any, kwargs: Any) -> None:
    KinetoStepTracker.increment_step(_REQUESTER)


def watch() -> None:
    """Start to count. Each call needs an unwatch()."""
    global _watching, _hook
    if _watching == 0:
        KinetoStepTracker.init_step_count(_REQUESTER)
        _hook = register_optimizer_step_post_hook(_count)
    _watching += 1


def unwatch() -> None:
    global _watching, _hook
    _watching -= 1
    if _watching == 0:
        _hook.remove()
        _hook = None
        KinetoStepTracker.erase_step_count(_REQUESTER)
