"""Classes whose calls are recorded as calls of modules and optimizers."""

from types import CodeType

from marey import _marey

_PREFIXES = {"module": "nn.Module: ", "optimizer": "Optimizer: "}


def _code(cls, call, kind):
    if call is None:
        call = "__call__" if kind == "module" else "step"
    if isinstance(call, str):
        name, call = call, getattr(cls, call, None)
        if call is None:
            raise ValueError(f"{cls.__name__} has no {name}")
    call = getattr(call, "__func__", call)  # of a method
    code = call if isinstance(call, CodeType) else getattr(call, "__code__", None)
    if not isinstance(code, CodeType):
        raise TypeError(f"call must be a Python function, its name or its code, not {call!r}")
    return code


def _check_reader(name, value):
    if value is not None and not isinstance(value, str) and not callable(value):
        raise TypeError(f"{name} must be the name of an attribute or a callable, not {value!r}")


def register_module_type(
    cls,
    *,
    call=None,
    name=None,
    parameters=None,
    gradients=None,
    state=None,
    children=None,
    arrays=(),
    kind="module",
    prefix=None,
):
    """Has the calls of a class's objects, and of those of its subclasses, recorded under names of their own, such as
    "nn.Module: Linear_0", wherever Python calls are recorded (with_stack=True).

    call: the function, its name in the class, or its code, whose calls are the object's calls; its first argument is
    the object. Without it `__call__`, or `step` of an optimizer. name: a callable that gives the name of the object's
    class. parameters, gradients, state, children: each the name of an attribute that the object itself holds (read
    where it lies: no property and no __getattr__ runs), or a callable that gets the object. Parameters are a dict by
    name, a list, or a list of groups, dicts that have "params"; gradients and state a dict by parameter or by its name,
    or a list in the same order; gradients may be ".x", the attribute x of each parameter; the state of a parameter is
    an array or a dict of arrays; children are a dict of modules by name. What is no array is skipped; with `arrays`,
    only objects of exactly these types count as arrays. prefix: what names begin with.

    Registering the same class and call again replaces what was said. Takes effect at once, also in sessions that run.
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


def unregister_module_type(cls):
    """Has calls of a class's objects recorded as calls of functions again. False: it was not registered."""
    return _marey.unregister_module_type(cls) > 0
