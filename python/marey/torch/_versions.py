"""How PyTorch's versions differ. Everything in Marey that depends on the installed version asks this module.

A difference that can be seen in PyTorch itself, such as a name that is missing, is found there rather than by the
version's number.
"""

from __future__ import annotations

import functools
from copy import copy

import torch

from marey._warnings import warn
from marey.compat.config import _ExperimentalConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

VERSION = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))

#: Whether an empty list of activities is an error; before, it meant all activities.
REFUSES_EMPTY_ACTIVITIES = VERSION >= (2, 13)
#: Whether averages include Python functions unless `include_python_functions` says otherwise.
AVERAGES_INCLUDE_CALLS = (2, 12) <= VERSION < (2, 14)
#: Whether `metadata_json` of events is deprecated, and whether it is gone and `event_metadata` is deprecated.
DEPRECATES_METADATA_JSON = VERSION >= (2, 12)
DEPRECATES_EVENT_METADATA = VERSION >= (2, 15)
#: The recorder of CUDA work that PyTorch has besides Kineto: its name in `custom_profiler_config`, and to users.
HAS_SECOND_RECORDER = VERSION >= (2, 13)
SECOND_RECORDER = ("cuspy", "Cuspy") if VERSION >= (2, 15) else ("cupti_monitor", "cupti_monitor profiler backend")
#: Whether its files are compressed, and ".gz" is added to their names.
SECOND_RECORDER_COMPRESSES = VERSION >= (2, 14)

_MODULES = (
    "with_modules is deprecated and will be removed in a future release. It only collects data for TorchScript models, "
    "which are themselves deprecated, and does nothing in eager mode. Use with_stack=True, which records nn.Module "
    "events for eager models."
)
_METRICS = (
    "profiler_metrics and profiler_measure_per_kernel are deprecated and ignored. These options will be removed in a "
    "future release."
)
_STEPS = "adjust_profiler_step is deprecated and ignored. It will be removed in a future release."
_NVPROF = "`torch.autograd.profiler.{}` is deprecated and will be removed in PyTorch 2.17."


def check_keywords(given: dict[str, Any]) -> None:
    """Raise the error of the installed version for keywords of the profiler that it does not have any more."""
    if VERSION >= (2, 14) and "use_cuda" in given:
        raise TypeError("profile.__init__() got an unexpected keyword argument 'use_cuda'")


def activity_config(value: Any) -> Any:
    """Return the configuration of an activity, which may be given as a list of the types to record.

    It is PyTorch's class in versions that have one.
    """
    if hasattr(value, "activity_types"):
        return value
    make: Any = getattr(torch.profiler, "ProfilerActivityConfig", None)
    if make is None:
        from types import SimpleNamespace as make
    return make(activity_types=value)


def warn_deprecated(with_modules: bool, config: _ExperimentalConfig, stacklevel: int = 4) -> None:
    """Warn about options as the installed version does, and reset those that it ignores."""
    if VERSION >= (2, 14) and with_modules:
        warn(_MODULES, FutureWarning, stacklevel)
    if VERSION >= (2, 14) and (config.profiler_metrics or config.profiler_measure_per_kernel):
        warn(_METRICS, FutureWarning, stacklevel)
    if VERSION >= (2, 15) and config.adjust_profiler_step:
        warn(_STEPS, FutureWarning, stacklevel)
        config.adjust_profiler_step = False


def warn_deprecated_name(name: str) -> None:
    """Warn that a name of ``torch.autograd.profiler`` will be removed, as the installed version does."""
    if VERSION >= (2, 15):
        warn(_NVPROF.format(name), FutureWarning, stacklevel=4)


@functools.cache
def _option_positions() -> dict[str, int]:
    """Return the position of each option in the state of PyTorch's ``_ExperimentalConfig``.

    Most of its options cannot be read as attributes, and their order changes between versions. So each one is set
    alone, to see where the state changes.
    """
    make = torch._C._profiler._ExperimentalConfig
    usual = make().__getstate__()
    found = {}
    for name, kind in _ExperimentalConfig._types.items():
        other: Any = ["x"] if kind == "list[str]" else "x" if kind == "str" else True
        try:
            state = make(**{name: other}).__getstate__()
        except TypeError:
            continue  # this version does not have it
        changed = [i for i, (value, before) in enumerate(zip(state, usual)) if value != before]
        if changed:
            found[name] = changed[0]
    return found


def to_marey_config(config: Any) -> Any:
    """Convert PyTorch's experimental options to Marey's, and copy Marey's; other values are returned unchanged."""
    if isinstance(config, _ExperimentalConfig):
        return copy(config)
    if not isinstance(config, torch._C._profiler._ExperimentalConfig):
        return config
    positions, state = _option_positions(), config.__getstate__()
    usual = type(config)().__getstate__()
    unknown = [i for i, value in enumerate(state) if i not in positions.values() and value != usual[i]]
    if unknown:
        ignore_options(f"option {i} of _ExperimentalConfig ({state[i]!r})" for i in unknown)
    return _ExperimentalConfig(**{name: _with_text(state[place]) for name, place in positions.items()})


def _with_text(value: Any) -> Any:
    """Return the value of an option; some versions keep texts in lists as bytes."""
    return [item.decode() if isinstance(item, bytes) else item for item in value] if isinstance(value, list) else value


def ignore_options(options: Iterable[str]) -> None:
    """Log that options of PyTorch's profiler have no effect."""
    import logging

    text = ", ".join(options)
    if text:
        logging.getLogger("marey.torch").warning("ignored, since Marey does not support them: %s", text)
