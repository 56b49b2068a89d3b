"""Prints the Python part of ``marey doctor``: one line for each check, its fields separated by tabs."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def _hook() -> tuple[str, str, str]:
    """Return (state, fact, help) for recording Python calls."""
    if sys.version_info < (3, 12):
        if sys.getprofile() is not None:
            return "BAD", "another profiler uses the profile hook (sys.setprofile)", "run the program without it"
        return "ok", "frame evaluation hook (3.11), and the profile hook for calls into C", ""
    tools = {number: sys.monitoring.get_tool(number) for number in (3, 4, 2)}
    if None not in tools.values():
        names = ", ".join(tools.values())
        used = f"sys.monitoring has no free tool id: all are used by {names}"
        return "BAD", used, "run the program without one of these tools"
    return "ok", "sys.monitoring", ""


def _internals() -> tuple[str, str, str]:
    """Return (state, fact, help) for the parts of CPython that its public interface does not contain."""
    from marey.launch import internals

    version = sys.version_info[:2]
    if version not in internals.CHECKED:
        return "BAD", f"not checked on Python {version[0]}.{version[1]}", "use a version of Python that Marey supports"
    return "ok", f"checked on {internals.CHECKED[version]}: {', '.join(internals.used(version))}", ""


def _pytorch() -> tuple[str, str, str]:
    """Return (state, fact, help) for PyTorch.

    A child process imports it, since that may print, fail or crash.
    """
    import importlib.util
    import subprocess

    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:  # no origin: a folder with that name
        return "off", "not installed for this Python", "for PyTorch programs: pip install torch"
    done = subprocess.run([sys.executable, "-m", "marey.torch._doctor"], capture_output=True, text=True)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 3]
    if done.returncode != 0 or not lines:
        errors = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return "BAD", f"cannot be imported: {errors[-1]}", "reinstall it, or run: python -c 'import torch'"
    state, _, fact, help = lines[-1]
    return state, fact, help


def _lines() -> Iterator[tuple[str, str, str, str]]:
    import platform

    from marey import _marey

    version = platform.python_version()
    yield "ok", "python", f"{version}, {sys.executable}", ""
    yield "ok", "package", _marey.__file__, ""
    for name, check in (("calls", _hook), ("internals", _internals), ("pytorch", _pytorch)):
        state, fact, help = check()
        yield state, name, fact, help


def main() -> None:
    for line in _lines():
        print("\t".join(line))


if __name__ == "__main__":
    main()
