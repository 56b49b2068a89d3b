"""``emit_nvtx`` and ``emit_itt``: pass ranges on to other tools while their block runs."""

from marey._active import running
from marey._activities import ActiveProfilerType
from marey._marey import Error, IttEmitter, NvtxEmitter


class _Emitter:
    """What both have in common. Each object is entered once."""

    _kind = ""
    _start = None

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False
        self._emitter = None
        self._alive = None  # stands for it among what runs, without keeping it alive

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise Error(f"{type(self).__name__} is not reentrant: make another one to emit to {self._kind} again")
        self._emitter = self._start(bool(self.record_shapes))
        self.entered = True
        self._alive = object()
        running[self._alive] = ActiveProfilerType[self._kind]
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self._stop()
        return False

    def __del__(self):
        if getattr(self, "_emitter", None) is not None:
            self._stop()

    def _stop(self):
        emitter, self._emitter = self._emitter, None
        if emitter is None:
            return
        emitter.stop()
        running.pop(self._alive, None)


class emit_nvtx(_Emitter):
    """Every range of every thread becomes an NVTX range, every instant a mark, while the block runs.

    A range says its name, then ``, seq = N``, ``, op_id = N`` and, with record_shapes, ``, sizes = [...]`` and
    ``, input_op_ids = [...]``. Raises ``marey.Error`` when NVTX is not available or another emit_nvtx runs.
    """

    _kind = "NVTX"
    _start = NvtxEmitter


class emit_itt(_Emitter):
    """Every range of every thread becomes an ITT task, every instant a task without length, while the block runs.

    A task has the plain name; what emit_nvtx would say stands in the task's metadata, under ``details``. Raises
    ``marey.Error`` when ITT is not available or another emit_itt runs.
    """

    _kind = "ITT"
    _start = IttEmitter
