"""Options for PyTorch's second recorder of CUDA work (Cuspy; before 2.15: cupti_monitor), which Marey replaces too."""

from __future__ import annotations

from marey.torch import _versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey.compat.config import _ExperimentalConfig

_UNSUPPORTED = ("enable_environment_counters", "enable_graph_dependencies", "enable_event_node_ids", "pm_metrics")


def _custom_options(text: str) -> dict[str, Any]:
    """Return the options in `custom_profiler_config`: a JSON object, or the name of a backend."""
    import json

    if not text:
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return {"backend": text}
    return found if isinstance(found, dict) else {}


def use_second_recorder(config: _ExperimentalConfig, activity_configs: dict[Any, Any], records_cpu: bool) -> bool:
    """Return whether the program selects that recorder, and add its options to `config`.

    Raises PyTorch's errors, and logs options that Marey does not support.
    """
    if not _versions.HAS_SECOND_RECORDER:
        return False
    name, title = _versions.SECOND_RECORDER
    options = _custom_options(config.custom_profiler_config)
    is_selected = options.get("backend") == name or bool(options.get(name))
    ignored = []
    for activity in activity_configs.values():
        for each in getattr(activity, "profiler_configs", ()):
            if hasattr(each, "enable_cuda_sync_events"):
                is_selected = True
                options.update(vars(each))
            else:
                ignored += [f"{type(each).__name__}.{key}" for key, value in vars(each).items() if value]
    if not is_selected:
        if f"{name}_async_export" in options:
            raise ValueError(f"{name}_async_export is only supported with the {name} backend")
    else:
        if not records_cpu:
            raise ValueError(f"{title} currently requires CPU activity")
        config.enable_cuda_sync_events |= bool(options.get("enable_cuda_sync_events"))
        ignored += [key for key in _UNSUPPORTED if options.get(key)]
    _versions.ignore_options(ignored)
    return is_selected
