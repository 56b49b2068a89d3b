"""``marey.profile``: recording with schedules, steps and callbacks."""

from __future__ import annotations

import sys

from marey._enumerations import ActiveProfilerType, ProfilerActivity, ProfilerState, RecordScope
from marey._marey import (
    Error,
    Session,
    async_range,
    execution_trace_request,
    hold_tracer,
    join_traces,
    release_tracer,
)
from marey._warnings import warn
from marey.compat.config import ProfilerConfig, _ExperimentalConfig
from marey.compat.steps import KinetoStepTracker
from marey.context import propagation
from marey.recording import options
from marey.recording.active import running
from marey.recording.cycle import Cycle
from marey.recording.defaults import with_file_defaults
from marey.recording.metadata import checked_metadata, metadata_text
from marey.recording.profile_results import ProfilerStats, Results, timed
from marey.recording.schedule import ProfilerAction, always_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike
    from types import TracebackType
    from typing import Any, Literal, Unpack

    from marey._marey import Trace
    from marey.context.propagation import Carried
    from marey.recording.options import SessionOptions

_STEP_REQUESTER = "ProfilerStep"


class profile(Results):
    """Record from start() to stop(), or while its block runs.

    Accepts the keywords of ``torch.profiler.profile`` and ``torch.autograd.profiler.profile``, and these:

    Args:
        output: A capture file. It survives the program, however it ends.
        threads: "all" (default), or "tasks" for this thread and the work that it starts.
        scopes: The kinds of range to record (``RecordScope``); all by default.
        c_calls: With ``with_stack``: True to record calls into C functions too. "all" on Python 3.12+ includes call
            sites that also call Python functions.
        config: True to take options that are not given from files (docs/guide/run.md, "Defaults").

    Keyword Args:
        max_bytes (int): The size limit of the recording.
        policy (str): At the limit, "stop" recording, "drop" new events, or overwrite the oldest ones ("ring").
        last (float): Keep only this many seconds before the end.
        sample (int): Sample the stacks of all threads, so many times per second of their CPU time.
        include (Iterable[str]): With ``with_stack``: record only calls in files and modules that match a pattern.
        exclude (Iterable[str]): With ``with_stack``: do not record calls in files and modules that match a pattern.
        fold_libraries (bool): Record only the outermost call into the standard library and installed packages.
        min_duration_us (float): Leave out calls shorter than this; 0 for no limit.
        max_depth (int): Leave out calls nested deeper than this; 0 for no limit.
        call_budget (int): Stop recording calls after this many; 0 for no limit.
        call_lines (bool): Record the line from which each call was made.

    docs/reference/python_tracer.md describes the options for calls; docs/reference/environment.md lists all options.
    """

    _follows_threads = True  # with threads="tasks": into threads that the program starts

    @with_file_defaults
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
        threads: Literal["all", "tasks"] | None = None,
        scopes: Iterable[RecordScope] | None = None,
        c_calls: bool | Literal["fast", "all"] = True,
        config: bool = False,
        **session_options: Unpack[SessionOptions],
    ) -> None:
        options.check_arguments(schedule, on_trace_ready, experimental_config, post_processing_timeout_s, c_calls)
        self.enabled = enabled
        self.experimental_config = experimental_config if experimental_config is not None else _ExperimentalConfig()
        self._activities, self.activity_filters = options.choose_activities(
            activities, use_cpu, use_kineto, activity_filters, bool(use_device or use_cuda)
        )
        self.use_cpu = bool(use_cpu)
        self.use_device = options.choose_device(self._activities, use_device, use_cuda)
        if not self._activities:
            raise Error("there are no activities to record")
        self.devices = options.choose_devices(
            self._activities,
            self.use_device,
            self.activity_filters,
            use_kineto,
            self.experimental_config.enable_cuda_sync_events,
        )
        self.record_shapes = record_shapes or with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.c_calls = c_calls
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.execution_trace_observer = execution_trace_observer or self._observer_from_environment()
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.output = _text_of_path(output)
        if threads is None:
            threads = "tasks" if self.experimental_config.profile_all_threads is False else "all"
        self.session_options = options.choose_options({"threads": threads, **session_options}, with_stack)
        self.scopes = options.choose_scopes(
            self._default_scopes() if scopes is None else scopes, self._activities, self.activity_filters
        )

        self.schedule = schedule if schedule is not None else always_record
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: async_range | None = None
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}  # for the next start, and of the running session
        self.trace_id: str | None = None
        self._session: Session | None = None  # while a cycle records
        self._warm_up: Session | None = None  # before it: devices take milliseconds to begin recording
        self._carried: Carried | None = None  # the token of propagation.install
        self._excludes_devices = False  # set by toggle_collection_dynamic
        self._partial_traces: list[Trace] = []  # traces of this cycle, ended by toggle_collection_dynamic
        self._traces = []
        self._events = None
        self._stats = ProfilerStats()
        self._is_prepared = False
        self._has_started = False
        self._has_warned = False
        self._cycle = Cycle()
        self._alive = object()  # its key in `running`, which does not keep the profiler alive

    @staticmethod
    def _observer_from_environment() -> Any:
        if not execution_trace_request()[0]:
            return None
        from marey.recording.execution_trace import ExecutionTraceObserver

        return ExecutionTraceObserver.build_execution_trace_obs_from_env()

    def _default_scopes(self) -> Iterable[RecordScope] | None:
        """Return the scopes to record if none are given; None: all."""
        return None

    # ---- recording

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        self.stop()
        return False

    def __del__(self) -> None:
        if sys.is_finalizing() or getattr(self, "_alive", None) not in running:
            return
        # Nothing can stop it any more. Its records are in the capture file, or lost.
        session, self._session = self._session, None
        if session is not None:
            if self._follows_threads:
                propagation.remove(self._carried)
            session.discard()
        self._close()
        if session is not None:
            text = "a profiler was deleted while it was running: call stop() or use a with statement"
            warn(text, ResourceWarning)

    @property
    def current_action(self) -> ProfilerAction:
        """The action of the current step; see ``schedule``."""
        action: ProfilerAction = self._types.action(self._cycle.current)
        return action

    @property
    def activities(self) -> set[ProfilerActivity]:
        """The activities that it records."""
        return {self._types.activity(activity) for activity in self._activities}

    @property
    def entered(self) -> bool:
        """Whether it is running."""
        return self._alive in running

    @property
    def use_cuda(self) -> bool:
        return self.use_device == "cuda"

    @property
    def kineto_activities(self) -> set[ProfilerActivity]:
        return self.activities

    @property
    def profiler_kind(self) -> ProfilerState:
        """How devices are recorded: their activity (KINETO), or events around ranges (..._FALLBACK)."""
        return options.profiler_state(self.use_device, self.devices)

    @property
    def profiling_start_time_ns(self) -> int:
        """The start of the last recording on the clock CLOCK_MONOTONIC_RAW; 0 before the first one."""
        return self._traces[0].start_ns if self._traces else 0

    @property
    def profiling_end_time_ns(self) -> int:
        """The end of the last recording on the same clock."""
        return self._traces[0].end_ns if self._traces else 0

    @property
    def profiler(self) -> profile | None:
        """This object: in PyTorch, one profiler contains another."""
        return self

    def start(self) -> None:
        """Start recording. Raises ``marey.Error`` if it is already running."""
        if not self.enabled:
            return
        hold_tracer()  # Marey's own calls are not recorded
        try:
            self._start()
        finally:
            release_tracer()

    def _start(self) -> None:
        if self._alive in running:
            raise Error("Profiler context manager is not reentrant: this one is running")
        action = self._next_action(0)
        running[self._alive] = ActiveProfilerType.KINETO
        self._has_started = True
        self.step_num = 0
        if not self.acc_events:
            self._traces = []
        KinetoStepTracker.init_step_count(_STEP_REQUESTER)
        try:
            self._cycle.move_to(action, self)
        except BaseException:
            self._close()
            raise
        self._open_step()

    def stop(self) -> None:
        """Stop recording. Does nothing if it is not running."""
        if self._alive not in running:
            return
        try:
            self._close_step()
            self._cycle.move_to(None, self)
        finally:
            self._close()

    def _close(self) -> None:
        running.pop(self._alive, None)
        KinetoStepTracker.erase_step_count(_STEP_REQUESTER)
        self._is_prepared = False
        self._end_warm_up()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()

    def step(self) -> None:
        """Mark the start of the program's next step. A profiler with a schedule that never started is started."""
        if self._alive not in running:
            if self._has_started or not self.record_steps:
                return
            self.start()
            if not self.enabled:
                return
        action = self._next_action(self.step_num + 1)
        self._close_step()
        self.step_num += 1
        hold_tracer()  # Marey's own calls are not recorded
        try:
            self._cycle.move_to(action, self, self._device_has_stopped())
        finally:
            KinetoStepTracker.increment_step(_STEP_REQUESTER)
            self._open_step()
            release_tracer()

    def _device_has_stopped(self) -> bool:
        """Return whether the device's recorder has stopped because its memory is full."""
        return False

    def _next_action(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if not isinstance(action, ProfilerAction) or action is ProfilerAction.DEVICE_STOPPED:
            raise ValueError(f"a schedule must return a ProfilerAction, not {action!r}")
        return action

    def _open_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = async_range(f"ProfilerStep#{self.step_num}", is_step=True)

    def _close_step(self) -> None:
        if self.step_rec_fn is not None:
            step, self.step_rec_fn = self.step_rec_fn, None
            step.end()

    # ---- one cycle

    def prepare_trace(self) -> None:
        """Prepare a cycle, as a schedule's warm-up step does."""
        if self._traces and not self.acc_events and not self._has_warned:
            self._has_warned = True
            warn("only the events of the last cycle are kept (set acc_events=True to keep all)", stacklevel=6)
        self._stats = ProfilerStats()
        with timed(self._stats, "profiler_prepare_call_duration_us"):
            self.trace_id = self.create_trace_id()
        self._is_prepared = True

    def start_trace(self) -> None:
        """Start a cycle, without steps and callbacks; start() does this."""
        if not self._is_prepared:
            self.prepare_trace()
        self._is_prepared = False
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        self._partial_traces = []
        self._excludes_devices = False
        given = self._metadata
        options = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
        self._metadata = {
            "trace_id": f'"{self.trace_id}"' if str(self.trace_id).isalnum() else metadata_text(str(self.trace_id)),
            **{option: "1" for option in options if getattr(self, option)},
            **self.preset_metadata,
            **(given if self._session is None and not self._traces else {}),
        }
        try:
            with timed(self._stats, "profiler_enable_call_duration_us"):
                self._start_session()
        except BaseException:
            self._metadata = given
            raise
        finally:
            self._end_warm_up()

    def _begin_warm_up(self) -> None:
        if self.devices["devices"]:
            self._warm_up = Session()
            self._warm_up.start(scopes=1 << RecordScope.DEVICE_RUNTIME, **self.devices)

    def _end_warm_up(self) -> None:
        if self._warm_up is not None:
            self._warm_up.discard()
            self._warm_up = None

    def _start_session(self) -> None:
        session = Session()
        session.start(
            name=str(self.trace_id),
            output=self.output,
            scopes=self.scopes,
            record_shapes=self.record_shapes,
            concrete_inputs=self.record_shapes,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            with_stack=self.with_stack,
            with_modules=self.with_modules,
            c_calls=self.c_calls,
            **self.devices,
            **self.session_options,
        )
        try:
            if self._excludes_devices:
                session.record_devices(False)
            for key, value in self._metadata.items():
                session.add_metadata(key, value)
            if self._follows_threads:
                self._carried = propagation.install(session)
        except BaseException:
            session.discard()
            raise
        self._session = session

    def stop_trace(self) -> None:
        """End the cycle that start_trace() began, so that its results can be read."""
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        stats = self._stats
        with timed(stats, "profiler_disable_call_duration_us"):
            self._stop_session()
            trace = self._partial_traces[0] if len(self._partial_traces) == 1 else join_traces(self._partial_traces)
        self._partial_traces = []
        stats.number_of_dropped_events = sum(count for code, _, count in trace.problems if code == "dropped")
        stats.profiling_window_duration_sec = trace.window_ns * 1e-9
        self._metadata = {}
        self._traces = [trace, *self._traces] if self.acc_events else [trace]

    def _stop_session(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            if self._follows_threads:
                propagation.remove(self._carried)
            self._partial_traces.append(self._trace_of(session))

    def _trace_of(self, session: Session) -> Trace:
        """Stop a session and return its trace."""
        return session.stop()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def toggle_collection_dynamic(
        self, enable: bool | None = None, activities: Iterable[ProfilerActivity] = (), *, enabled: bool | None = None
    ) -> None:
        """Pause or resume recording in the middle of a cycle. Does nothing outside of one.

        All parts of a cycle are one trace. With ``output``, each stretch between pauses of the CPU activity has its own
        capture file; pausing devices, which are all switched together, does not start a new file.
        """
        enable = enable if enable is not None else enabled  # PyTorch's two profilers name it differently
        if enable is None:
            raise TypeError("toggle_collection_dynamic() requires enable=True or enable=False")
        is_recording = self._session is not None
        others = set(activities) - {ProfilerActivity.CPU}
        for activity in sorted(others - self._activities):
            warn(f"{activity} is not recorded: cannot pause or resume it")
        if others & self._activities and self.devices["devices"]:
            self._excludes_devices = not enable
            if self._session is not None:
                self._session.record_devices(bool(enable))
        is_in_cycle = is_recording or bool(self._partial_traces)
        if ProfilerActivity.CPU not in activities or not is_in_cycle or is_recording == bool(enable):
            return
        if enable:
            self._start_session()
        else:
            self._stop_session()

    # ---- ids and metadata

    def default_trace_id(self) -> str:
        """Return 32 random hexadecimal digits."""
        import os

        return os.urandom(16).hex().upper()

    def create_trace_id(self) -> str:
        """Return a new id: the result of the callback, if one is set, or a random one."""
        if self.custom_trace_id_callback is not None:
            return self.custom_trace_id_callback()
        return self.default_trace_id()

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Set a function that returns the ids of the traces that follow."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """Return the id of the last trace; None before the first one."""
        return self.trace_id

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the metadata of the trace."""
        self.add_metadata_json(key, metadata_text(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value, given as text, to the metadata of the trace.

        This is the trace being recorded, else the last one, else the next one.
        """
        key, value = checked_metadata(key, value)
        if self._session is not None:
            self._session.add_metadata(key, value)
        elif self._traces and not self._partial_traces:
            self._traces[0] = self._traces[0]._with_metadata(key, value)
            return
        self._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value to the metadata of every trace of this profiler. Call it before start()."""
        key, value = checked_metadata(key, value)
        self.preset_metadata[key] = value

    def config(self, create_trace_id: bool = False) -> ProfilerConfig:
        """Return the options in the form of PyTorch's native configuration."""
        if create_trace_id:
            self.trace_id = self.create_trace_id()
        return ProfilerConfig(
            self.profiler_kind if self.enabled else ProfilerState.Disabled,
            self.record_shapes,
            self.profile_memory,
            self.with_stack,
            self.with_flops,
            self.with_modules,
            self.experimental_config,
            self.trace_id or "",
        )


def _text_of_path(path: str | PathLike[str] | None) -> str:
    import os

    return os.fsdecode(path) if path is not None else ""
