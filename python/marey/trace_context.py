"""Join ranges with the spans of distributed traces: the header ``traceparent`` of W3C Trace Context."""

from marey.context.span import Span

__all__ = ["Span"]
