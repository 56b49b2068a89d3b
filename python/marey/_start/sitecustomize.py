"""Starts to record a Python process under ``marey run``, which puts this folder on PYTHONPATH."""

import sys


def _recorder(folder):
    """Return the extension of this file's package, or None if this interpreter cannot load it."""
    import os

    package = os.path.dirname(folder)
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


def _of_rank(settings, rank, world_size):
    """Return the settings for a rank: "out=app.marey" becomes "out=app.rank3.marey" for rank 3."""
    import re

    if not rank.isdigit() or not world_size.isdigit() or world_size == "1":
        return settings
    path = re.search(r"(?:^|,)out=((?:[^,\\]|\\.)*?)(\.marey)?(?=,|$)", settings)
    if path is None or path[1].endswith(f".rank{rank}") or f".rank{rank}." in path[1]:
        return settings
    return f"{settings[: path.end(1)]}.rank{rank}{settings[path.end(1) :]}"


def _begin(folder):
    import os

    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():  # as the library does: the user is not trusted
        return
    settings = os.environ.get("MAREY", "")
    wants_calls = "calls=on" in settings.split(",")
    wants_torch = settings != "" and os.environ.get("MAREY_TORCH") == "1"
    if not wants_calls and not wants_torch:
        return
    if wants_torch:
        settings = os.environ["MAREY"] = _of_rank(
            settings, os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
        )
    if wants_calls:  # the session starts with the program, not when the library is loaded
        del os.environ["MAREY"]
    recorder = _recorder(folder)
    # Calls into C are cheap to record on 3.12 and later.
    c_calls = "on" if sys.version_info >= (3, 12) else "off"
    os.environ["MAREY"] = settings.replace(",c_calls=auto", f",c_calls={c_calls}")
    if recorder is None:
        return
    if wants_torch:
        from marey import _torch_import

        _torch_import.watch()
    if wants_calls:
        from marey import _program

        _program.record()


def _start():
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
