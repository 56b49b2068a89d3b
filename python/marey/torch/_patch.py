"""Makes ``torch.profiler`` use Marey in this process, and restores it."""

from __future__ import annotations

import torch.autograd.profiler
import torch.profiler

from marey.compat import handlers, steps
from marey.torch import _activities, _autograd_profile, _emitters, _profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# record_function, schedule, the enumerations and _ExperimentalConfig stay PyTorch's: Marey records PyTorch's ranges,
# including those that PyTorch opens itself, and takes and returns its enumerations.
_PROFILER_NAMES = {
    "profile": _profile.profile,
    "_KinetoProfile": _profile.profile,
    "tensorboard_trace_handler": handlers.tensorboard_trace_handler,
    "supported_activities": _activities.supported_activities,
    "ExecutionTraceObserver": _emitters.ExecutionTraceObserver,
    "KinetoStepTracker": steps.KinetoStepTracker,
}
_AUTOGRAD_NAMES = {
    "profile": _autograd_profile.profile,
    "emit_nvtx": _emitters.emit_nvtx,
    "emit_itt": _emitters.emit_itt,
    "KinetoStepTracker": steps.KinetoStepTracker,
}
_PLACES = (
    (torch.profiler, _PROFILER_NAMES),
    (torch.profiler.profiler, _PROFILER_NAMES),
    (torch.autograd.profiler, _AUTOGRAD_NAMES),
)
_originals: list[tuple[Any, str, Any]] = []  # (module, name, original)


def patch() -> None:
    """Replace ``torch.profiler.profile`` and related names, also in ``torch.autograd``, with Marey's.

    Names that a module of the program imported earlier do not change. Calling it twice has no effect.
    """
    if _originals:
        return
    for module, names in _PLACES:
        for name, value in names.items():
            if hasattr(module, name):
                _originals.append((module, name, getattr(module, name)))
                setattr(module, name, value)


def unpatch() -> None:
    """Restore the names that patch() replaced, except those that other code has replaced since."""
    ours = {(module, name): value for module, names in _PLACES for name, value in names.items()}
    for module, name, original in _originals:
        if getattr(module, name, None) is ours[module, name]:
            setattr(module, name, original)
    _originals.clear()
