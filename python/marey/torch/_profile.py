"""``marey.torch.profile``: ``marey.profile`` that also records PyTorch operators, memory and ranks."""

import torch
from torch._C._profiler import ProfilerState
from torch.autograd import profiler as torch_profiler
from torch.profiler import _memory_profiler

from marey import _profile
from marey._activities import RecordScope
from marey._marey import Error
from marey._marey import torch as native
from marey._warnings import warn
from marey.torch import _flag, _ranks, _steps
from marey.torch._activities import to_marey_activities, to_marey_activity, to_marey_config, to_marey_schedule
from marey.torch._emitters import ExecutionTraceObserver
from marey.torch._observer import load
from marey.torch._types import Types


class profile(_profile.profile):
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
        enabled=True,
        *,
        activities=None,
        schedule=None,
        experimental_config=None,
        activity_filters=None,
        with_stack=False,
        use_cpu=True,
        use_kineto=None,
        qualified_names=False,
        **options,
    ):
        if not use_cpu and not use_kineto:
            raise AssertionError("use_cpu=False requires use_kineto=True: nothing would be recorded otherwise")
        super().__init__(
            enabled,
            with_stack=with_stack,
            use_cpu=use_cpu,
            use_kineto=use_kineto,
            activities=to_marey_activities(activities),
            schedule=to_marey_schedule(schedule),
            experimental_config=to_marey_config(experimental_config),
            activity_filters={to_marey_activity(key): names for key, names in (activity_filters or {}).items()} or None,
            **options,
        )
        if self.experimental_config.trace_only and with_stack:
            warn("trace_only is ignored: with_stack=True needs events")
            self.experimental_config.trace_only = False
        self.use_kineto = use_kineto
        self.qualified_names = qualified_names
        # PyTorch's name for a device of an extension, whether or not something records that device.
        name = options.get("use_device")
        self._has_private_device = name is not None and name == torch_profiler._get_privateuse1_backend_name()
        self._output = self.output  # as given, without the rank
        self._state = 0  # the result of native.enter()
        self._held = None  # the argument of native.hold() while it records

    def _default_scopes(self):
        if self.experimental_config.record_python_gc_info:
            return None
        return [scope for scope in RecordScope if scope is not RecordScope.GARBAGE_COLLECTION]

    @property
    def profiler_kind(self):
        """How devices are recorded, as PyTorch's ``ProfilerState``."""
        if self._has_private_device:
            is_timed = self.use_kineto is False
            return ProfilerState.KINETO_PRIVATEUSE1_FALLBACK if is_timed else ProfilerState.KINETO_PRIVATEUSE1
        return getattr(ProfilerState, super().profiler_kind.name)

    def events(self):
        """Return all events as an ``EventList``. Raises an error if ``trace_only`` is set, as PyTorch does."""
        if self.experimental_config.trace_only:
            raise Error("trace_only=True excludes events(): use export_chrome_trace()")
        return super().events()

    def _parse_kineto_results(self, result, timeout_s=None):
        """Return all events: nothing is lost to a timeout, since nothing is parsed."""
        if timeout_s is not None and timeout_s < 0:
            raise ValueError(f"timeout_s must be non-negative, not {timeout_s}")
        return list(result._events)

    def toggle_collection_dynamic(self, enable=None, activities=(), *, enabled=None):
        super().toggle_collection_dynamic(enable, [to_marey_activity(item) for item in activities], enabled=enabled)

    def _memory_profile(self):
        """Return PyTorch's own ``MemoryProfile`` of the recording: PyTorch's analysis of Marey's event tree."""
        self._check_memory_profile()
        return _memory_profiler.MemoryProfile(self.kineto_results)

    @staticmethod
    def _observer_from_environment():
        return ExecutionTraceObserver.build_execution_trace_obs_from_env()

    def start_trace(self):
        info = _ranks.distributed_info()
        if info is not None:
            self.preset_metadata_json("distributedInfo", info)
        if torch.cuda.is_available():
            allows = torch.backends.cuda.matmul.fp32_precision == "tf32"
            self.preset_metadata_json("allow_tf32_cublas", str(int(allows)))
            self.preset_metadata_json("cuda_runtime_version", str(torch._C._cuda_getCompiledVersion()))
        super().start_trace()

    def _start_session(self):
        load()
        _ranks.take_node_id()
        self.output = _ranks.path_for_rank(self._output)
        held = native.NEEDS_OVERLOADS if self.experimental_config.capture_overload_names else 0
        native.hold(held)
        try:
            super()._start_session()
        except BaseException:
            native.release(held)
            raise
        self._held = held
        try:
            _steps.watch()
            _flag.hold()
            self._state = native.enter(self.record_shapes)
        except BaseException:
            self._stop_session()
            raise

    def _stop_session(self):
        if self._session is None:
            return
        try:
            super()._stop_session()
        finally:
            self._leave()

    def _trace_of(self, session):
        return session.stop_for_pytorch(names=not self.qualified_names, forward_links=native.links_forward())

    def _close(self):
        self._leave()  # a profiler that was deleted is not stopped
        super()._close()

    def _leave(self):
        """Restore the state of PyTorch. Can be called more than once."""
        held, self._held = self._held, None
        if held is None:
            return
        native.leave(self._state)
        _flag.release()
        _steps.unwatch()
        native.release(held)
