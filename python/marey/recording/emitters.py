"""``emit_nvtx`` and ``emit_itt``: forward ranges to other tools while their block runs."""

from __future__ import annotations

from marey._enumerations import ActiveProfilerType
from marey._marey import Error, IttEmitter, NvtxEmitter
from marey.recording.active import running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self


class _Emitter:
    """The base class of both emitters. Each object can be entered once."""

    _kind = ""
    _start: type[NvtxEmitter | IttEmitter]

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False
        self._emitter: NvtxEmitter | IttEmitter | None = None
        self._alive: object = None  # its key in `running`, which does not keep the emitter alive

    def __enter__(self) -> Self:
        if not self.enabled:
            return self
        if self.entered:
            raise Error(f"{type(self).__name__} is not reentrant: create another one to emit to {self._kind} again")
        self._emitter = self._start(bool(self.record_shapes))
        self.entered = True
        self._alive = object()
        running[self._alive] = ActiveProfilerType[self._kind]
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        self._stop()
        return False

    def __del__(self) -> None:
        if getattr(self, "_emitter", None) is not None:
            self._stop()

    def _stop(self) -> None:
        emitter, self._emitter = self._emitter, None
        if emitter is None:
            return
        emitter.stop()
        running.pop(self._alive, None)


class emit_nvtx(_Emitter):
    """Forward every range of every thread to NVTX, and every instant as a mark, while the block runs.

    An NVTX range is named by the range's name, ``, seq = N``, ``, op_id = N`` and, with record_shapes,
    ``, sizes = [...]`` and ``, input_op_ids = [...]``. Raises ``marey.Error`` if NVTX is not available or another
    emit_nvtx is running.
    """

    _kind = "NVTX"
    _start = NvtxEmitter


class emit_itt(_Emitter):
    """Forward every range of every thread to ITT as a task, and every instant as an empty task.

    Active while the block runs. A task has the plain name; the details that emit_nvtx adds to the name are in the
    task's metadata, under ``details``. Raises ``marey.Error`` if ITT is not available or another emit_itt is running.
    """

    _kind = "ITT"
    _start = IttEmitter
