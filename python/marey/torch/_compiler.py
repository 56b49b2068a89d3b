"""``record_function`` in functions that ``torch.compile`` compiles: it is traced as PyTorch's own is."""

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
        pass  # the compiler of this PyTorch cannot be told: it interrupts its graph for the range


def register():
    """The compiler is a large part of PyTorch, which most programs never import."""
    when_imported("torch._dynamo", _register_with_compiler)
