"""Registers classes whose calls are recorded as calls of modules or optimizers."""

from collections.abc import Callable
from types import CodeType
from typing import Any, Literal

def register_module_type(
    cls: type,
    *,
    call: Callable[..., Any] | CodeType | str | None = None,
    name: Callable[[Any], str] | None = None,
    parameters: str | Callable[[Any], Any] | None = None,
    gradients: str | Callable[[Any], Any] | None = None,
    state: str | Callable[[Any], Any] | None = None,
    children: str | Callable[[Any], Any] | None = None,
    arrays: type | tuple[type, ...] = (),
    kind: Literal["module", "optimizer"] = "module",
    prefix: str | None = None,
) -> None: ...
def unregister_module_type(cls: type) -> bool: ...
