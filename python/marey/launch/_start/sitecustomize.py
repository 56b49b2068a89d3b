"""Starts to record a Python process under ``marey run``, which puts this folder on PYTHONPATH."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _recorder(folder: str) -> Any:
    """Return the extension of this file's package, or None if this interpreter cannot load it."""
    import os

    package = os.path.dirname(os.path.dirname(folder))
    loaded = set(sys.modules)
    for place in (os.path.dirname(package), None):  # an editable install has its extension in another folder
        if place is not None:
            sys.path.insert(0, place)
        try:
            import marey._marey

            return marey._marey
        except ImportError:
            for name in [name for name in sys.modules if name.partition(".")[0] == "marey" and name not in loaded]:
                del sys.modules[name]
        finally:
            if place is not None:
                sys.path.remove(place)
    return None


def _begin(folder: str) -> None:
    import os

    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():  # as the library does: the user is not trusted
        return
    settings = os.environ.get("MAREY", "")
    has_torch = os.environ.get("MAREY_TORCH") == "1"
    # Processes that record neither do not load the extension. It alone parses the settings: a file name may contain
    # "calls=on" too.
    if settings == "" or not (has_torch or "calls=on" in settings):
        return
    del os.environ["MAREY"]  # the session starts with the program, not when the library is loaded
    sys._marey_starts = True  # type: ignore[attr-defined]  # and so do calls, if the library was loaded before
    recorder = _recorder(folder)
    del sys._marey_starts  # type: ignore[attr-defined]
    os.environ["MAREY"] = settings
    if recorder is None:
        return
    if has_torch:
        from marey._imports import record_with

        record_with("marey.torch", "torch")
    from marey.launch import program

    program.record()


def _start() -> None:
    folder = __file__.rpartition("/")[0]
    while folder in sys.path:
        sys.path.remove(folder)
    try:
        # Import the sitecustomize that this one hides.
        own = sys.modules.pop("sitecustomize")
        try:
            import sitecustomize  # noqa: F401
        except ImportError as error:
            if error.name != "sitecustomize":
                raise
        finally:
            sys.modules.setdefault("sitecustomize", own)
    finally:
        _begin(folder)


_start()
