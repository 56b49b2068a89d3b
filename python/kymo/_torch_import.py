"""Has PyTorch's operators recorded from the moment that the program has imported it: what ``kymo run --torch`` does."""

import sys


class _Finder:
    """Finds torch as the others do, and gives it a loader that has the last word."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader:
    """The loader of torch, which tells us when it has done its work."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _record()


def _record():
    from kymo._kymo import Error

    try:
        from kymo.torch import load

        load()
    except (Error, ImportError, OSError) as error:
        print(f"kymo: PyTorch's operators are not recorded: {error}", file=sys.stderr)


def watch():
    """To be called while the interpreter starts."""
    sys.meta_path.insert(0, _Finder())
