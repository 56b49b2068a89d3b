"""Emitters and the execution trace for PyTorch operators, which must become ranges to be observed."""

from __future__ import annotations

from marey._marey import record_function
from marey._marey import torch as native
from marey._warnings import warn
from marey.recording import emitters, execution_trace
from marey.torch import _hooks, _ranks
from marey.torch._observer import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class _OperatorEmitter(emitters._Emitter):
    """The base class of both emitters."""

    def __enter__(self) -> Self:
        if not self.enabled or self.entered:
            return super().__enter__()
        load()
        _wait_for_device()
        needs = native.NEEDS_RANGES
        if self.record_shapes:
            needs |= native.NEEDS_INPUTS | native.NEEDS_OUTPUTS
        native.hold(needs)
        try:
            super().__enter__()
        except BaseException:
            native.release(needs)
            raise
        self._needs = needs
        _hooks.hold_flag()
        return self

    def _stop(self) -> None:
        if self._emitter is None:
            return
        try:
            _wait_for_device()
        finally:
            native.release(self._needs)
            _hooks.release_flag()
            super()._stop()


def _wait_for_device() -> None:
    """Wait for work that was started before, so that it is not counted as part of the block."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


class emit_nvtx(_OperatorEmitter, emitters.emit_nvtx):
    """``marey.emit_nvtx`` that includes every operator and backward node."""


class emit_itt(_OperatorEmitter, emitters.emit_itt):
    """``marey.emit_itt`` that includes every operator and backward node."""


class ExecutionTraceObserver(execution_trace.ExecutionTraceObserver):
    """``marey.ExecutionTraceObserver`` that includes every operator and backward node."""

    _NEEDS = native.NEEDS_RANGES | native.NEEDS_INPUTS | native.NEEDS_OUTPUTS
    _is_holding = False

    def start(self) -> None:
        if self.is_registered and not self._is_holding:
            load()
            native.hold(self._NEEDS)
            self._is_holding = True
        super().start()
        groups = _ranks.group_configs() if self.is_running() else None
        if groups is not None:
            with record_function("## process_group:init ##", groups):
                pass

    @property
    def _execution_trace_running(self) -> bool:
        return self.is_running()  # upstream's name

    def stop(self) -> None:
        super().stop()
        if self._is_holding:
            native.release(self._NEEDS)
            self._is_holding = False

    def unregister_callback(self) -> None:
        self.stop()
        super().unregister_callback()

    def _save_resources(self, folder: str) -> None:
        """Save the source files that PyTorch's compiler generated: kernel nodes refer to them."""
        import shutil
        import sys

        cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
        for module in cache.modules if cache is not None else ():
            path = getattr(module, "__file__", None)
            try:
                if path is not None:
                    shutil.copy(path, folder)
            except OSError as error:
                warn(f"cannot copy {path} to {folder}: {error}")
