"""Runs a function once a module has been imported."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class _Finder:
    """Finds one module with the other finders, and wraps its loader."""

    def __init__(self, name: str, then: Callable[[], Any]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)  # type: ignore[assignment]
        return spec


class _Loader:
    """Wraps the loader of a module, and calls a function after the module has been executed."""

    def __init__(self, loader: Any, then: Callable[[], Any]) -> None:
        self._loader = loader
        self._then = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()


def when_imported(name: str, then: Callable[[], Any]) -> None:
    """Call `then` once the module has been imported, or now if it already is."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def record_with(recorder: str, module: str) -> None:
    """Call ``record_program()`` of the package `recorder` once `module` has been imported.

    The names are texts: the package depends on the recorder of a framework only in programs that use the framework.
    """
    when_imported(module, lambda: _start(recorder, module))


def _start(recorder: str, module: str) -> None:
    from importlib import import_module

    from marey._marey import Error

    try:
        import_module(recorder).record_program()
    except (Error, ImportError, OSError) as error:
        print(f"marey: the operators of {module} are not recorded: {error}", file=sys.stderr)
