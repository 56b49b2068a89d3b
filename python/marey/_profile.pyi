"""``marey.profile``: recording with schedules, steps and callbacks, and access to the results."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Literal

from marey._activities import ProfilerActivity, ProfilerConfig, ProfilerState, RecordScope, _ExperimentalConfig
from marey._results import ProfilerStats, Results
from marey._schedule import ProfilerAction

class profile(Results):
    enabled: bool
    activity_filters: dict[ProfilerActivity, set[str]]
    experimental_config: _ExperimentalConfig
    execution_trace_observer: Any
    use_cpu: bool
    use_device: str | None
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    c_calls: bool | Literal["fast", "all"]
    call_filters: dict[str, Any]
    with_flops: bool
    with_modules: bool
    acc_events: bool
    schedule: Callable[[int], ProfilerAction]
    on_trace_ready: Callable[[profile], Any] | None
    record_steps: bool
    step_num: int
    step_rec_fn: object | None
    preset_metadata: dict[str, str]
    output: str
    max_bytes: int
    policy: str
    threads: str
    _stats: ProfilerStats
    def __init__(
        self,
        enabled: bool = True,
        *,
        activities: Iterable[ProfilerActivity | Mapping[ProfilerActivity, Iterable[str]]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        use_device: str | None = None,
        use_cpu: bool = True,
        use_kineto: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Mapping[ProfilerActivity, Iterable[str]] | None = None,
        output: str | PathLike[str] | None = None,
        max_bytes: int = ...,
        policy: Literal["stop", "drop", "ring"] = "stop",
        threads: Literal["all", "tasks"] | None = None,
        scopes: Iterable[RecordScope] | None = None,
        c_calls: bool | Literal["fast", "all"] = True,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        fold_libraries: bool = False,
        min_duration_us: float = 0,
        max_depth: int = 0,
        call_budget: int = 0,
        call_lines: bool = False,
    ) -> None: ...
    def __enter__(self) -> profile: ...
    def __del__(self) -> None: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def step(self) -> None: ...
    def prepare_trace(self) -> None: ...
    def start_trace(self) -> None: ...
    def stop_trace(self) -> None: ...
    @property
    def current_action(self) -> ProfilerAction: ...
    def default_trace_id(self) -> str: ...
    def create_trace_id(self) -> str: ...
    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None: ...
    def get_trace_id(self) -> str | None: ...
    def add_metadata(self, key: str, value: str) -> None: ...
    def add_metadata_json(self, key: str, value: str) -> None: ...
    def preset_metadata_json(self, key: str, value: str) -> None: ...
    def toggle_collection_dynamic(
        self, enable: bool | None = None, activities: Iterable[ProfilerActivity] = (), *, enabled: bool | None = None
    ) -> None: ...
    def config(self, create_trace_id: bool = False) -> ProfilerConfig: ...
    @property
    def entered(self) -> bool: ...
    @property
    def use_cuda(self) -> bool: ...
    @property
    def kineto_activities(self) -> set[ProfilerActivity]: ...
    @property
    def activities(self) -> set[ProfilerActivity]: ...
    @property
    def profiler_kind(self) -> ProfilerState: ...
    @property
    def profiling_start_time_ns(self) -> int: ...
    @property
    def profiling_end_time_ns(self) -> int: ...
    @property
    def profiler(self) -> profile | None: ...
