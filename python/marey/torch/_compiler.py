"""Makes ``torch.compile`` trace ``record_function`` like PyTorch's own."""

from __future__ import annotations

from marey._imports import when_imported
from marey._marey import record_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _register_with_compiler() -> None:
    try:
        from torch._dynamo.decorators import substitute_in_graph

        def traced(name: str, args: Any = None, **_: Any) -> Any:
            import torch

            return torch.profiler.record_function(name, args)

        substitute_in_graph(record_function, is_embedded_type=True, skip_signature_check=True)(traced)
    except (ImportError, TypeError, ValueError):
        pass  # this version's compiler does not support it: the range breaks the graph


def register() -> None:
    """Register with the compiler once it is imported: it is large, and most programs never import it."""
    when_imported("torch._dynamo", _register_with_compiler)
