"""``emit_nvtx`` and ``emit_itt``: forward ranges to other tools while their block runs."""

from types import TracebackType
from typing import Any

class _Emitter:
    enabled: bool
    record_shapes: bool
    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None: ...
    def __del__(self) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any: ...

class emit_nvtx(_Emitter): ...
class emit_itt(_Emitter): ...
