"""``kymo.profile``: recording with schedules, steps and callbacks, and reading what was recorded."""

import json
import os
import time
import uuid

from kymo import _activities
from kymo._activities import ProfilerActivity, _ExperimentalConfig
from kymo._cycle import Cycle
from kymo._kymo import Error, Session, record_function
from kymo._schedule import ProfilerAction, always_record
from kymo._steps import KinetoStepTracker
from kymo._warnings import warn

_STEP_REQUESTER = "ProfilerStep"
_DEVICES = {
    "cuda": ProfilerActivity.CUDA,
    "xpu": ProfilerActivity.XPU,
    "mtia": ProfilerActivity.MTIA,
    "hpu": ProfilerActivity.HPU,
}
_live = set()  # profilers and emitters that run


def _is_profiler_enabled():
    """Whether any profiler or emitter runs."""
    return bool(_live)


class ProfilerStats:
    """How long the profiler's own work took."""

    __slots__ = (
        "profiling_window_duration_sec",
        "number_of_events",
        "profiler_prepare_call_duration_us",
        "profiler_enable_call_duration_us",
        "profiler_disable_call_duration_us",
        "parse_kineto_call_duration_us",
        "function_events_build_tree_call_duration_us",
    )

    def __init__(self):
        for name in self.__slots__:
            setattr(self, name, 0)

    def __repr__(self):
        return "ProfilerStats(" + ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__) + ")"


def _microseconds_since(start):
    return (time.perf_counter_ns() - start) // 1000


class profile:
    """Records what happens between start and stop, or while its block runs.

    Takes the keywords of ``torch.profiler.profile`` and of ``torch.autograd.profiler.profile``, and:

    output      a capture file: what was recorded survives the program, however it ends
    max_bytes   a ceiling; policy ("stop", "drop", "ring") says what happens there
    threads     "all" (the default), or "tasks": this thread and what it starts
    scopes      the kinds of range to record (``RecordScope``); all by default
    """

    def __init__(
        self,
        enabled=True,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        use_cuda=None,
        use_device=None,
        use_cpu=True,
        use_kineto=True,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        activity_filters=None,
        output=None,
        max_bytes=1 << 30,
        policy="stop",
        threads=None,
        scopes=None,
    ):
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError(f"post_processing_timeout_s must not be negative, not {post_processing_timeout_s}")
        self.enabled = enabled
        self.experimental_config = experimental_config if experimental_config is not None else _ExperimentalConfig()
        self.activities, self.activity_filters = self._choose_activities(activities, use_cpu, use_kineto)
        self.activity_filters.update(activity_filters or {})
        _activities._check_filters(self.activity_filters)
        self.use_device = self._choose_device(use_device, use_cuda)
        self.record_shapes = record_shapes or with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.output = os.fspath(output) if output is not None else ""
        self.max_bytes = max_bytes
        self.policy = policy
        self.threads = self._choose_threads(threads)
        self.scopes = sum({1 << int(scope) for scope in scopes}) if scopes is not None else 0

        self.schedule = schedule if schedule is not None else always_record
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn = None
        self.preset_metadata = {}
        self._metadata = {}
        self._trace_id = None
        self._session = None
        self._traces = []
        self._stats_of_cycle = ProfilerStats()
        self._is_running = False
        self._was_prepared = False
        self._cycle = Cycle(
            {
                "prepare": self.prepare_trace,
                "start": self.start_trace,
                "stop": self.stop_trace,
                "ready": self._trace_ready,
            }
        )

    # ---- what is asked for

    @staticmethod
    def _choose_activities(activities, use_cpu, use_kineto):
        if activities is not None:
            return _activities._parse_activities(activities)
        if not use_cpu and not use_kineto:
            raise Error("use_cpu=False needs use_kineto=True: nothing else would be recorded")
        chosen = _activities.supported_activities()
        if not use_cpu:
            chosen = chosen - {ProfilerActivity.CPU}
        if not chosen:
            raise Error("no activity is left to record")
        return chosen, {}

    def _choose_device(self, use_device, use_cuda):
        if use_cuda:
            warn("use_cuda is deprecated: give use_device='cuda' or activities", FutureWarning, stacklevel=4)
            use_device = use_device or "cuda"
        if use_device is None:
            for name, activity in _DEVICES.items():
                if activity in self.activities and activity in _activities.supported_activities():
                    return name
            return None
        activity = _DEVICES.get(use_device)
        if activity is None:
            warn(f"{use_device} is not a known device: nothing of it is recorded", stacklevel=4)
            return None
        if activity not in _activities.supported_activities():
            warn(f"{use_device} is not available here: nothing of it is recorded", stacklevel=4)
            return None
        self.activities.add(activity)
        return use_device

    def _choose_threads(self, threads):
        all_threads = self.experimental_config.profile_all_threads
        if threads is None:
            return "tasks" if all_threads is False else "all"
        if threads not in ("all", "tasks"):
            raise ValueError(f"threads must be 'all' or 'tasks', not {threads!r}")
        return threads

    # ---- recording

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self.stop()
        KinetoStepTracker.erase_step_count(_STEP_REQUESTER)
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()
        return False

    @property
    def current_action(self):
        return self._cycle.current

    def start(self):
        if not self.enabled:
            return
        if self._is_running:
            raise Error("profile is not reentrant: this one is running")
        self._is_running = True
        self.step_num = 0
        if not self.acc_events:
            self._traces = []
        _live.add(self)
        KinetoStepTracker.init_step_count(_STEP_REQUESTER)
        self._cycle.move_to(self.schedule(0))
        self._open_step()

    def stop(self):
        """Ends the recording. Harmless when nothing runs."""
        if not self._is_running:
            return
        self._is_running = False
        _live.discard(self)
        self._close_step()
        self._cycle.move_to(None)

    def step(self):
        """Says that the next step of the program begins."""
        if not self.enabled or not self._is_running:
            return
        self._close_step()
        action = self.schedule(self.step_num + 1)
        if not isinstance(action, ProfilerAction):
            raise ValueError(f"a schedule gives a ProfilerAction, not {action!r}")
        self.step_num += 1
        self._cycle.move_to(action)
        KinetoStepTracker.increment_step(_STEP_REQUESTER)
        self._open_step()

    def _open_step(self):
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _close_step(self):
        if self.step_rec_fn is not None:
            step, self.step_rec_fn = self.step_rec_fn, None
            step.__exit__(None, None, None)

    def prepare_trace(self):
        start = time.perf_counter_ns()
        self._stats_of_cycle = ProfilerStats()
        self._trace_id = self.create_trace_id()
        self._session = Session()
        self._was_prepared = True
        self._stats_of_cycle.profiler_prepare_call_duration_us = _microseconds_since(start)

    def start_trace(self):
        if not self._was_prepared:
            self.prepare_trace()
        self._was_prepared = False
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        start = time.perf_counter_ns()
        self._session.start(
            name=self._trace_id,
            output=self.output,
            max_bytes=self.max_bytes,
            policy=self.policy,
            threads=self.threads,
            scopes=self.scopes,
            record_shapes=self.record_shapes,
            concrete_inputs=self.record_shapes,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            with_stack=self.with_stack,
            with_modules=self.with_modules,
        )
        self._stats_of_cycle.profiler_enable_call_duration_us = _microseconds_since(start)
        self._metadata = dict(self.preset_metadata)
        for option in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, option):
                self._metadata[option] = "1"

    def stop_trace(self):
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        start = time.perf_counter_ns()
        trace = self._session.stop()
        stats = self._stats_of_cycle
        stats.profiler_disable_call_duration_us = _microseconds_since(start)
        stats.number_of_events = len(trace)
        stats.profiling_window_duration_sec = trace.window_ns * 1e-9
        metadata = {"trace_id": json.dumps(self._trace_id), **self._metadata}
        trace = trace.with_metadata(metadata)
        self._traces = [trace, *self._traces] if self.acc_events else [trace]

    def _trace_ready(self):
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # ---- ids and metadata

    def default_trace_id(self):
        return uuid.uuid4().hex.upper()

    def create_trace_id(self):
        if self.custom_trace_id_callback is not None:
            return self.custom_trace_id_callback()
        return self.default_trace_id()

    def set_custom_trace_id_callback(self, callback):
        self.custom_trace_id_callback = callback

    def get_trace_id(self):
        return self._trace_id

    @property
    def trace_id(self):
        return self._trace_id

    def add_metadata(self, key, value):
        """Puts a text into the trace."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key, value):
        """Puts a JSON value, given as text, into the trace."""
        try:
            json.loads(value)
        except ValueError as error:
            raise ValueError(f"the metadata of {key!r} is not JSON: {error}") from None
        self._metadata[key] = value

    def preset_metadata_json(self, key, value):
        """The same for every trace of this profiler, given before it starts."""
        self.preset_metadata[key] = value

    # ---- results

    @property
    def trace(self):
        """What was recorded, as a ``kymo.Trace``; with acc_events, all cycles as one."""
        if not self._traces:
            raise Error("nothing has been recorded yet: the profiler has not finished a cycle")
        return self._traces[0] if len(self._traces) == 1 else self._joined()

    def _stats(self):
        return self._stats_of_cycle
