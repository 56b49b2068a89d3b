"""Registers classes whose calls are recorded as calls of modules or optimizers."""

from __future__ import annotations

from types import CodeType

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

_PREFIXES = {"module": "nn.Module: ", "optimizer": "Optimizer: "}


def _code(cls: type, call: Any, kind: str) -> CodeType:
    if call is None:
        call = "__call__" if kind == "module" else "step"
    if isinstance(call, str):
        name, call = call, getattr(cls, call, None)
        if call is None:
            raise ValueError(f"{cls.__name__} has no {name}")
    call = getattr(call, "__func__", call)  # the function of a method
    code = call if isinstance(call, CodeType) else getattr(call, "__code__", None)
    if not isinstance(code, CodeType):
        raise TypeError(f"call must be a Python function, its name or its code, not {call!r}")
    return code


def _check_reader(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str) and not callable(value):
        raise TypeError(f"{name} must be the name of an attribute or a callable, not {value!r}")


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
) -> None:
    """Record the calls of a class's objects under names such as "nn.Module: Linear_0".

    Applies wherever Python calls are recorded (with_stack=True), and to subclasses. Registering the same class and
    call again replaces the earlier registration. Takes effect at once, also in running sessions.

    Each of ``parameters``, ``gradients``, ``state`` and ``children`` is the name of an attribute stored in the object
    itself (read directly: no property and no ``__getattr__`` runs), or a callable that receives the object. Values that
    are not arrays are skipped.

    Args:
        cls: The class.
        call: The function, its name in the class, or its code object, that runs when the object is called; its first
            argument is the object. The default is ``__call__``, or ``step`` for an optimizer.
        name: A callable that returns the name of the object's class.
        parameters: A dict by name, a list, or a list of groups (dicts that have "params").
        gradients: A dict by parameter or its name, a list in the order of the parameters, or ".x" for the attribute x
            of each parameter.
        state: Like gradients; the state of a parameter is an array or a dict of arrays.
        children: A dict of modules by name.
        arrays: If given, only objects of exactly these types count as arrays.
        kind: "module" or "optimizer".
        prefix: The text that names start with.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a class, not {cls!r}")
    if kind not in _PREFIXES:
        raise ValueError(f"kind must be 'module' or 'optimizer', not {kind!r}")
    if name is not None and not callable(name):
        raise TypeError(f"name must be a callable, not {name!r}")
    readers = {"parameters": parameters, "gradients": gradients, "state": state, "children": children}
    for key, value in readers.items():
        _check_reader(key, value)
    arrays = arrays if isinstance(arrays, tuple) else (arrays,)
    if not all(isinstance(item, type) for item in arrays):
        raise TypeError("arrays must be a class or a tuple of classes")
    prefix = _PREFIXES[kind] if prefix is None else str(prefix)
    _marey.register_module_type(
        cls, _code(cls, call, kind), name, parameters, gradients, state, children, arrays, prefix, kind == "optimizer"
    )


def unregister_module_type(cls: type) -> bool:
    """Undo register_module_type(); return False if the class was not registered."""
    return _marey.unregister_module_type(cls) > 0
