# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="unreachable"
# ruff: noqa: UP031, UP036, B904
"""Starts to record a Python process under ``marey run``, which puts this folder on PYTHONPATH.

Every Python that the program starts runs this file, so it must be valid in Python 2.7 too.
"""

import sys


def _recorder(folder):
    """Return the extension of this file's package; raise ImportError if this interpreter cannot load it."""
    import os

    if sys.version_info < (3, 11):
        version = "%d.%d" % sys.version_info[:2]
        raise ImportError("Marey needs CPython 3.11 or later; %s is Python %s" % (sys.executable, version))
    package = os.path.dirname(os.path.dirname(folder))
    loaded = set(sys.modules)
    try:
        sys.path.insert(0, os.path.dirname(package))
        try:
            import marey._marey
        finally:
            sys.path.remove(os.path.dirname(package))
    except ImportError as error:
        for name in [name for name in sys.modules if name.partition(".")[0] == "marey" and name not in loaded]:
            del sys.modules[name]
        try:
            import marey._marey  # an editable install has its extension in another folder
        except ImportError:
            raise error
    return marey._marey


def _print_reason(settings, error):
    """Say why nothing is recorded, if this is the program itself: children without Marey are counted by the command."""
    import os

    command = settings.rpartition(",tree=")[2].partition(",")[0].partition(":")[2]
    if command == str(os.getppid()):
        sys.stderr.write("marey: %s\n" % error)


def _begin(folder):
    import os

    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():  # as the library does: the user is not trusted
        return
    settings = os.environ.get("MAREY", "")
    has_torch = os.environ.get("MAREY_TORCH") == "1"
    # Processes that need none of these do not load the extension. It alone parses the settings: a file name may
    # contain "calls=on" too. Samples have Python frames only with the extension.
    if settings == "" or not (has_torch or "calls=on" in settings or "sample=" in settings):
        return
    del os.environ["MAREY"]  # the session starts with the program, not when the library is loaded
    sys._marey_starts = True  # type: ignore[attr-defined]  # and so do calls, if the library was loaded before
    try:
        _recorder(folder)
    except ImportError as error:
        _print_reason(settings, error)
        return
    finally:
        del sys._marey_starts  # type: ignore[attr-defined]
        os.environ["MAREY"] = settings
    if has_torch:
        from marey._imports import record_with

        record_with("marey.torch", "torch")
    from marey.launch import program

    program.record()


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
            if getattr(error, "name", str(error).rpartition(" ")[2]) != "sitecustomize":
                raise
        finally:
            sys.modules.setdefault("sitecustomize", own)
    finally:
        _begin(folder)


_start()
