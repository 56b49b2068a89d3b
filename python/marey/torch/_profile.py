"""``marey.torch.profile``: ``marey.profile`` that also records PyTorch operators, memory and ranks."""

from __future__ import annotations

import inspect
import logging
import os
from time import perf_counter

import torch
from torch._C._profiler import ProfilerState
from torch.autograd import profiler as torch_profiler
from torch.profiler import _memory_profiler

from marey._enumerations import DeviceActivity, ProfilerActivity, RecordScope
from marey._marey import Error, path_of_rank
from marey._marey import torch as native
from marey._warnings import warn
from marey.compat.config import _ExperimentalConfig
from marey.recording import profile as own
from marey.recording.metadata import checked_metadata
from marey.recording.profile_results import timed
from marey.torch import _clocks, _graph_lanes, _hooks, _ranks, _versions
from marey.torch._activities import to_marey_activities, to_marey_activity, to_marey_schedule
from marey.torch._emitters import ExecutionTraceObserver
from marey.torch._observer import load
from marey.torch._second_recorder import use_second_recorder
from marey.torch._types import Types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike
    from typing import Any

    from marey._marey import Session, Trace
    from marey.results.event_list import EventList


def _made_within(seconds: float, events: EventList) -> list[Any]:
    """Return the events that can be created in that time, and log a warning, as PyTorch does, if it ends too early."""
    made: list[Any] = []
    end = perf_counter() + seconds
    for event in events:
        if perf_counter() >= end:
            logging.getLogger("torch.autograd.profiler").warning(
                "creating the events timed out after %.3f seconds: partial results, %d of %d events",
                seconds,
                len(made),
                len(events),
            )
            break
        made.append(event)
    return made


def _includes_cpu(activities: list[Any] | None) -> bool:
    return activities is None or any(
        ProfilerActivity.CPU in (item if isinstance(item, dict) else (item,)) for item in activities
    )


def _signature(constructor: Callable[..., None], inherited: Callable[..., None]) -> inspect.Signature:
    """Return the parameters of two constructors, the first of which passes its options to the second.

    Lightning, for example, gives only options that it finds there.
    """
    parameters = dict(inspect.signature(inherited).parameters)
    rest = parameters.popitem()[1]  # **session_options
    own_ones = list(inspect.signature(constructor).parameters.values())[:-1]
    merged = {**parameters, **{each.name: each for each in own_ones}}
    return inspect.Signature([*merged.values(), rest])


class profile(own.profile):
    """Record a PyTorch program from start() to stop(), or while its block runs.

    Accepts the arguments of ``torch.profiler.profile`` and ``torch.autograd.profiler.profile``, including PyTorch's own
    enumerations and options, and those that ``marey.profile`` adds. With ``output``, each rank of a distributed program
    has its own capture, with the rank in its name. Values in its results have PyTorch's types, and calls have
    PyTorch's names: ``net.py(12): forward``, ``<built-in function len>``.

    Args:
        qualified_names: True to name functions with their class and module, as ``marey.profile`` does:
            ``net.py(12): Net.forward``, ``builtins.len``.
    """

    _types = Types

    def __init__(
        self,
        enabled: bool = True,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        experimental_config: Any = None,
        activity_filters: Mapping[Any, Iterable[str]] | None = None,
        use_cpu: bool = True,
        use_kineto: bool | None = None,
        qualified_names: bool = False,
        _profiler_extensions: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if not use_cpu and not use_kineto:
            raise AssertionError("use_cpu=False requires use_kineto=True: nothing would be recorded otherwise")
        _versions.check_keywords(options)
        own_activities, self.activity_configs = to_marey_activities(activities)
        config = _versions.to_marey_config(experimental_config)
        if config is None:
            config = _ExperimentalConfig()
        self._uses_second_recorder = isinstance(config, _ExperimentalConfig) and use_second_recorder(
            config, self.activity_configs, use_cpu and _includes_cpu(own_activities)
        )
        self._profiler_extensions = dict(_profiler_extensions or {})
        _versions.ignore_options(self._profiler_extensions)
        super().__init__(
            enabled,
            use_cpu=use_cpu,
            use_kineto=use_kineto,
            activities=own_activities,
            schedule=to_marey_schedule(schedule),
            experimental_config=config,
            activity_filters={to_marey_activity(key): names for key, names in (activity_filters or {}).items()} or None,
            **options,
        )
        _versions.warn_deprecated(self.with_modules, self.experimental_config)
        if self.experimental_config.trace_only and self.with_stack:
            warn("trace_only is ignored: with_stack=True needs events")
            self.experimental_config.trace_only = False
        # With PyTorch's own options, threads that the program starts are not followed unless all are recorded.
        self._follows_threads = (
            not isinstance(experimental_config, torch._C._profiler._ExperimentalConfig)
            or self.experimental_config.profile_all_threads is not False
            or "threads" in options
        )
        self.use_kineto = use_kineto
        self.qualified_names = qualified_names
        # PyTorch's name for a device of an extension, whether or not something records that device.
        name = options.get("use_device")
        self._has_private_device = name is not None and name == torch_profiler._get_privateuse1_backend_name()
        self._output = self.output  # as given, without the rank
        self._state = 0  # the result of native.enter()
        self._clocks: _clocks.ClockComparison | None = None
        self._held: int | None = None  # the argument of native.hold() while it records

    __init__.__signature__ = _signature(__init__, own.profile.__init__)  # type: ignore[attr-defined]

    def _default_scopes(self) -> Iterable[RecordScope] | None:
        if self.experimental_config.record_python_gc_info:
            return None
        return [scope for scope in RecordScope if scope is not RecordScope.GARBAGE_COLLECTION]

    @property
    def profiler_kind(self) -> Any:
        """How devices are recorded, as PyTorch's ``ProfilerState``."""
        if self._has_private_device:
            kind = "KINETO_PRIVATEUSE1_FALLBACK" if self.use_kineto is False else "KINETO_PRIVATEUSE1"
            return getattr(ProfilerState, kind, ProfilerState.KINETO)  # PyTorch 2.11 has no KINETO_PRIVATEUSE1
        return getattr(ProfilerState, super().profiler_kind.name)

    def events(self) -> EventList:
        """Return all events as an ``EventList``. Raises an error if ``trace_only`` is set, as PyTorch does."""
        if self.experimental_config.trace_only:
            raise Error("trace_only=True excludes events(): use export_chrome_trace()")
        events = super().events()
        if self.post_processing_timeout_s is not None:
            del events[len(_made_within(self.post_processing_timeout_s, events)) :]
        return events

    def _parse_kineto_results(self, result: Any, timeout_s: float | None = None) -> list[Any]:
        if timeout_s is None:
            return list(result._events)
        if timeout_s < 0:
            raise ValueError(f"timeout_s must be non-negative, not {timeout_s}")
        return _made_within(timeout_s, result._events)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:  # type: ignore[override]
        super().toggle_collection_dynamic(enable, [to_marey_activity(item) for item in activities])

    def export_chrome_trace(
        self,
        path: str | PathLike[str],
        use_python_export: bool = False,
        cuda_graph_annotations: Mapping[int, Any] | None = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> None:
        """Write a Chrome JSON trace for the Perfetto UI or chrome://tracing.

        It is compressed if the path ends in ".gz". `use_python_export` is ignored: there is only one exporter. The
        options for CUDA graphs, and the files written for PyTorch's second recorder of CUDA work (".gz" is added to
        the path; a path with ".pftrace" is written in Perfetto's format), are those of PyTorch 2.15.
        """
        self._export_chrome_trace(path, {}, cuda_graph_annotations, graph_lanes, default_stream)

    def _export_chrome_trace(
        self,
        path: str | PathLike[str],
        metadata: Mapping[str, str],
        annotations: Mapping[int, Any] | None,
        graph_lanes: str,
        default_stream: int,
    ) -> None:
        _graph_lanes.check(graph_lanes, annotations)
        path = os.fsdecode(path)
        if self._uses_second_recorder and _versions.SECOND_RECORDER_COMPRESSES and not path.endswith(".gz"):
            path += ".gz"
        trace = self.trace
        for key, value in metadata.items():
            trace = trace._with_metadata(*checked_metadata(key, value))
        with timed(self._stats, "export_call_duration_us"):
            if self._uses_second_recorder and ".pftrace" in path:
                trace.export(path, "perfetto")
                return
            trace.export_chrome_trace(path)
            if annotations and not self._uses_second_recorder:
                _graph_lanes.annotate(path, annotations, graph_lanes == "all", default_stream)

    def wait_for_exports(self) -> None:
        """Return at once: exports are written when they are requested."""

    def take_pending_cuspy_export(self) -> None:
        """Return None: exports are written when they are requested."""

    take_pending_cupti_export = take_pending_cuspy_export

    def _memory_profile(self) -> Any:
        """Return PyTorch's own ``MemoryProfile`` of the recording: PyTorch's analysis of Marey's event tree."""
        self._check_memory_profile()
        return _memory_profiler.MemoryProfile(self.kineto_results)

    @staticmethod
    def _observer_from_environment() -> Any:
        return ExecutionTraceObserver.build_execution_trace_obs_from_env()

    def start_trace(self) -> None:
        info = _ranks.distributed_info()
        if info is not None:
            self.preset_metadata_json("distributedInfo", info)
        if torch.cuda.is_available():
            allows = torch.backends.cuda.matmul.fp32_precision == "tf32"
            self.preset_metadata_json("allow_tf32_cublas", str(int(allows)))
            self.preset_metadata_json("cuda_runtime_version", str(torch._C._cuda_getCompiledVersion()))
        if self.experimental_config.disable_external_correlation:
            self.preset_metadata_json("disable_external_correlation", "1")
        super().start_trace()

    def _start_session(self) -> None:
        load()
        _ranks.take_node_id()
        self.output = path_of_rank(self._output, _ranks.rank())
        if self.devices["devices"] and native.records_waits():
            self.devices["device_activities"] |= DeviceActivity.WAITS
        held = native.NEEDS_OVERLOADS if self.experimental_config.capture_overload_names else 0
        native.hold(held)
        try:
            super()._start_session()
        except BaseException:
            native.release(held)
            raise
        self._held = held
        try:
            _hooks.watch_optimizers()
            _hooks.hold_flag()
            self._state = native.enter(self.record_shapes)
            if self.session_options.get("clock_exchange", True):
                self._clocks = _clocks.start()
        except BaseException:
            self._stop_session()
            raise

    def _stop_session(self) -> None:
        if self._session is None:
            return
        self._stop_clocks()
        try:
            self._await_gpu()
            super()._stop_session()
        finally:
            self._leave()

    def _await_gpu(self) -> None:
        """Wait for work in flight, so that it is recorded too. PyTorch's trace ends with this call as well."""
        if "cuda" not in self.devices["devices"] or self._excludes_devices or not torch.cuda.is_initialized():
            return
        # The default stream cannot be captured: asking would be one more call of CUDA in the trace.
        if torch.cuda.current_stream().cuda_stream == 0 or not torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize()

    def _stop_clocks(self) -> None:
        clocks, self._clocks = self._clocks, None
        if clocks is not None:
            clocks.stop()

    def _trace_of(self, session: Session) -> Trace:
        return session.stop_for_pytorch(names=not self.qualified_names, forward_links=native.links_forward())

    def _close(self) -> None:
        self._leave()  # a profiler that was deleted is not stopped
        super()._close()

    def _leave(self) -> None:
        """Restore the state of PyTorch. Can be called more than once."""
        held, self._held = self._held, None
        if held is None:
            return
        native.leave(self._state)
        _hooks.release_flag()
        _hooks.unwatch_optimizers()
        native.release(held)
