"""Counts optimizer steps as steps of the program while a profiler records."""

from torch.optim.optimizer import register_optimizer_step_post_hook

from marey._steps import KinetoStepTracker

_REQUESTER = "Optimizer"
_watching = 0
_hook = None


def _count(optimizer, args, kwargs):
    KinetoStepTracker.increment_step(_REQUESTER)


def watch():
    """Start to count. Each call needs an unwatch()."""
    global _watching, _hook
    if _watching == 0:
        KinetoStepTracker.init_step_count(_REQUESTER)
        _hook = register_optimizer_step_post_hook(_count)
    _watching += 1


def unwatch():
    global _watching, _hook
    _watching -= 1
    if _watching == 0:
        _hook.remove()
        _hook = None
        KinetoStepTracker.erase_step_count(_REQUESTER)
