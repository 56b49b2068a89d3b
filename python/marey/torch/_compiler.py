"""Makes ``torch.compile`` trace ``record_function`` like PyTorch's own."""

from marey._marey import record_function
from marey._torch_import import when_imported


def _register_with_compiler():
    try:
        from torch._dynamo.decorators import substitute_in_graph

        @substitute_in_graph(record_function, is_embedded_type=True, skip_signature_check=True)
        def traced(name, args=None, **_):
            import torch

            return torch.profiler.record_function(name, args)
    except (ImportError, TypeError, ValueError):
        pass  # this version's compiler does not support it: the range breaks the graph


def register():
    """Register with the compiler once it is imported: it is large, and most programs never import it."""
    when_imported("torch._dynamo", _register_with_compiler)
