"""The ids of a range in a distributed trace, and the header that carries them: W3C Trace Context."""

from __future__ import annotations

import re
import secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")


class Span:
    """The ids of one range: what to attach to it, and what to send to the services that it calls.

    Args:
        traceparent: The header of the request that the range handles. A missing or invalid one begins a new trace.

    Attributes:
        values: Pass these as ``keyword_values`` to ``marey.record_function_fast``. They make it a user range, and its
            span in OTLP files has these ids.
        traceparent: The header for requests that are made inside the range.
        trace_id: 32 hexadecimal digits, as shown in Jaeger and Tempo.
    """

    def __init__(self, traceparent: str | None = None) -> None:
        found = _HEADER.fullmatch(traceparent or "")
        span_id = secrets.token_hex(8)
        self.trace_id = found[1] if found else secrets.token_hex(16)
        self.traceparent = f"00-{self.trace_id}-{span_id}-{found[2] if found else '01'}"
        self.values: Mapping[str, str] = {
            "scope": "user_scope",
            "span_id": span_id,
            **({"traceparent": traceparent} if found and traceparent else {"trace_id": self.trace_id}),
        }
