"""Runs a function once PyTorch, or one of its modules, is imported (used by ``marey run --torch``)."""

import sys


class _Finder:
    """Finds one module with the other finders, and wraps its loader."""

    def __init__(self, name, then):
        self._name = name
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec


class _Loader:
    """Wraps the loader of a module, and calls a function after the module has been executed."""

    def __init__(self, loader, then):
        self._loader = loader
        self._then = then

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()


def _record():
    from marey._marey import Error

    try:
        from marey.torch import _flag, _ranks, load

        _ranks.take_node_id()
        load()
        _flag.hold()  # never released: the recording lasts until the program ends
    except (Error, ImportError, OSError) as error:
        print(f"marey: PyTorch operators are not recorded: {error}", file=sys.stderr)


def when_imported(name, then):
    """Call `then` once the module has been imported, or now if it already is."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def watch():
    """Load the observer once PyTorch is imported. Called while the interpreter starts."""
    when_imported("torch", _record)
