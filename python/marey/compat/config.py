"""The options of a profiler in the form of PyTorch's native objects."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey._enumerations import ProfilerState


class _ExperimentalConfig:
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

    _DEFAULTS = {
        "profiler_metrics": (),
        "profiler_measure_per_kernel": False,
        "verbose": False,
        "performance_events": (),
        "enable_cuda_sync_events": False,
        "adjust_profiler_step": False,
        "disable_external_correlation": False,
        "profile_all_threads": None,
        "capture_overload_names": False,
        "record_python_gc_info": False,
        "expose_kineto_event_metadata": False,
        "custom_profiler_config": "",
        "adjust_timestamps": False,
        "trace_only": False,
    }
    __slots__ = tuple(_DEFAULTS)

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self.__slots__
        if len(values) > len(names):
            raise TypeError(f"_ExperimentalConfig takes at most {len(names)} values, got {len(values)}")
        given = dict(zip(names, values))
        for name, value in named.items():
            if name not in self._DEFAULTS:
                raise TypeError(f"_ExperimentalConfig has no option {name!r}")
            if name in given:
                raise TypeError(f"_ExperimentalConfig got multiple values for {name!r}")
            given[name] = value
        for name, default in self._DEFAULTS.items():
            value = given.get(name, default)
            setattr(self, name, list(value) if isinstance(default, tuple) else value)

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_ExperimentalConfig, self._values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ExperimentalConfig) and self._values() == other._values()

    def __repr__(self) -> str:
        changed = (
            f"{name}={getattr(self, name)!r}"
            for name, default in self._DEFAULTS.items()
            if getattr(self, name) != (list(default) if isinstance(default, tuple) else default)
        )
        return f"_ExperimentalConfig({', '.join(changed)})"


class ProfilerConfig:
    """The options of a profiler, in the form of PyTorch's native configuration object."""

    state: ProfilerState
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: _ExperimentalConfig
    trace_id: str

    __slots__ = (
        "state",
        "report_input_shapes",
        "profile_memory",
        "with_stack",
        "with_flops",
        "with_modules",
        "experimental_config",
        "trace_id",
    )

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
        self.state = state
        self.report_input_shapes = report_input_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.experimental_config = experimental_config if experimental_config is not None else _ExperimentalConfig()
        self.trace_id = trace_id

    def __repr__(self) -> str:
        return "ProfilerConfig(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__) + ")"


def kineto_available() -> bool:
    """Return True: traces can always be recorded. For compatibility with PyTorch."""
    return True
