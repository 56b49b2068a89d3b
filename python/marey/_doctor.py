"""What ``marey doctor`` says of Python: a line for each fact, its parts separated by tabs."""

import sys


def _hook():
    """(state, fact, help) of recording Python's calls."""
    if sys.version_info < (3, 12):
        if sys.getprofile() is not None:
            return "BAD", "another profiler has the hook (sys.setprofile)", "start the program without it"
        return "ok", "the frame evaluation hook of 3.11, and the profile hook for calls into C", ""
    tools = {number: sys.monitoring.get_tool(number) for number in (3, 4, 2)}
    if None not in tools.values():
        names = ", ".join(tools.values())
        return "BAD", f"sys.monitoring has no tool id left: {names} have them", "start the program without one of them"
    return "ok", "sys.monitoring", ""


def _pytorch():
    """The same of PyTorch's operators. Another process imports it: that may print, fail or crash."""
    import importlib.util
    import subprocess

    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:  # or a folder of that name
        return "off", "not installed for this Python", "for programs that use it: pip install 'marey[torch]'"
    done = subprocess.run([sys.executable, "-m", "marey.torch._doctor"], capture_output=True, text=True)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 3]
    if done.returncode != 0 or not lines:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return "BAD", f"cannot be imported: {said[-1]}", "install it anew, or see: python -c 'import torch'"
    state, _, fact, help = lines[-1]
    return state, fact, help


def _lines():
    import platform

    from marey import _marey

    version = platform.python_version()
    yield "ok", "python", f"{version}, {sys.executable}", ""
    yield "ok", "package", _marey.__file__, ""
    state, fact, help = _hook()
    yield state, "calls", fact, help
    state, fact, help = _pytorch()
    yield state, "pytorch", fact, help


def main():
    for line in _lines():
        print("\t".join(line))


if __name__ == "__main__":
    main()
