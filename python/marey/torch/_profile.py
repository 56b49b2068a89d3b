"""``marey.torch.profile``: ``marey.profile`` that also records PyTorch operators, memory and ranks."""

import torch

from marey import _profile
from marey._marey import torch as native
from marey.torch import _flag, _ranks, _steps
from marey.torch._activities import to_marey_activities, to_marey_activity, to_marey_config, to_marey_schedule
from marey.torch._emitters import ExecutionTraceObserver
from marey.torch._observer import load


class profile(_profile.profile):
    """Record a PyTorch program from start() to stop(), or while its block runs.

    Accepts the arguments of ``torch.profiler.profile`` and ``torch.autograd.profiler.profile``, including PyTorch's own
    enumerations and options, and those that ``marey.profile`` adds. With ``output``, each rank of a distributed program
    has its own capture, with the rank in its name.
    """

    def __init__(
        self,
        enabled=True,
        *,
        activities=None,
        schedule=None,
        experimental_config=None,
        activity_filters=None,
        **options,
    ):
        super().__init__(
            enabled,
            activities=to_marey_activities(activities),
            schedule=to_marey_schedule(schedule),
            experimental_config=to_marey_config(experimental_config),
            activity_filters={to_marey_activity(key): names for key, names in (activity_filters or {}).items()} or None,
            **options,
        )
        self._output = self.output  # as given, without the rank
        self._state = 0  # the result of native.enter()
        self._held = None  # the argument of native.hold() while it records

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
