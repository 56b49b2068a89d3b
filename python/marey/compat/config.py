"""The options of a profiler in the form of PyTorch's native objects."""

from __future__ import annotations

from marey.results.types import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey._enumerations import ProfilerState

_EMPTY = {"list[str]": list, "bool": bool, "str": str}  # makes the default of an option of this type; others: None


class _ExperimentalConfig(_Fields):
    """Rarely needed options, given by position or keyword.

    Instances can be pickled and are compared by value.
    """

    profiler_metrics: list[str]
    profiler_measure_per_kernel: bool
    verbose: bool
    performance_events: list[str]
    enable_cuda_sync_events: bool
    adjust_profiler_step: bool
    disable_external_correlation: bool
    profile_all_threads: bool | None
    capture_overload_names: bool
    record_python_gc_info: bool
    expose_kineto_event_metadata: bool
    custom_profiler_config: str
    adjust_timestamps: bool
    trace_only: bool
    __slots__ = tuple(__annotations__)
    _types = __annotations__

    def __init__(self, *values: Any, **named: Any) -> None:
        given = {**dict(zip(self._names, values)), **named}
        if len(given) != len(values) + len(named) or not given.keys() <= self._types.keys():
            raise TypeError("_ExperimentalConfig: too many values, or an option that is unknown or given twice")
        for name, kind in self._types.items():
            setattr(self, name, given.get(name, _EMPTY[kind]() if kind in _EMPTY else None))


class ProfilerConfig(_Fields):
    """The options of a profiler, in the form of PyTorch's native configuration object."""

    state: ProfilerState
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: _ExperimentalConfig
    trace_id: str
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        state: ProfilerState,
        report_input_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        trace_id: str = "",
    ) -> None:
        config = experimental_config if experimental_config is not None else _ExperimentalConfig()
        flags = (report_input_shapes, profile_memory, with_stack, with_flops, with_modules)
        super().__init__(state, *flags, config, trace_id)


def kineto_available() -> bool:
    """Return True: traces can always be recorded. For compatibility with PyTorch."""
    return True
