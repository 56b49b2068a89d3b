"""Settings in PyTorch: how its compiler traces ranges, its profiler's flag, a hook of optimizers."""

from __future__ import annotations

from torch.autograd import profiler as torch_profiler
from torch.optim.optimizer import register_optimizer_step_post_hook

from marey._imports import when_imported
from marey._marey import record_function
from marey.compat.steps import KinetoStepTracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_REQUESTER = "marey.torch"  # not PyTorch's "Optimizer": with KINETO_USE_DAEMON, PyTorch counts optimizer steps too
# Guarded by the GIL.
_holders = 0
_before = False  # the flag before the first hold_flag(): PyTorch's profiler may be running too
_watching = 0
_hook: Any = None


def _register_with_compiler() -> None:
    try:
        from torch._dynamo.decorators import substitute_in_graph

        def traced(name: str, args: Any = None, **_: Any) -> Any:
            import torch

            return torch.profiler.record_function(name, args)

        substitute_in_graph(record_function, is_embedded_type=True, skip_signature_check=True)(traced)
    except (ImportError, TypeError, ValueError):
        pass  # this version's compiler does not support it: the range breaks the graph


def trace_compiled_ranges() -> None:
    """Make ``torch.compile`` trace ``record_function`` like PyTorch's own.

    Done once the compiler is imported: it is large, and most programs never import it.
    """
    when_imported("torch._dynamo", _register_with_compiler)


def hold_flag() -> None:
    """Set the flag without which PyTorch does not mark compiled regions and lookups.

    Each call needs a release_flag().
    """
    global _holders, _before
    if _holders == 0:
        _before = torch_profiler._is_profiler_enabled
    _holders += 1
    torch_profiler._set_is_profiler_enabled(True)


def release_flag() -> None:
    global _holders
    _holders -= 1
    if _holders == 0:
        torch_profiler._set_is_profiler_enabled(_before)


def _count(optimizer: Any, args: Any, kwargs: Any) -> None:
    KinetoStepTracker.increment_step(_REQUESTER)


def watch_optimizers() -> None:
    """Count optimizer steps as steps of the program. Each call needs an unwatch_optimizers()."""
    global _watching, _hook
    if _watching == 0:
        KinetoStepTracker.init_step_count(_REQUESTER)
        _hook = register_optimizer_step_post_hook(_count)
    _watching += 1


def unwatch_optimizers() -> None:
    global _watching, _hook
    _watching -= 1
    if _watching == 0:
        _hook.remove()
        _hook = None
        KinetoStepTracker.erase_step_count(_REQUESTER)
