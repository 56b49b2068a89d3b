"""The parts of CPython outside its public interface that the call tracer uses, and where they were checked."""

from __future__ import annotations

#: The release of each version on which the tracer was tested (docs/guide/install.md says how).
CHECKED = {(3, 11): "3.11.7", (3, 12): "3.12.3", (3, 13): "3.13.5", (3, 14): "3.14.8", (3, 15): "3.15.0"}

#: (part, used for, source file in src/sources/python, first version, last version)
INTERNALS = (
    ("frame evaluation function", "Python calls", "py311/frame_hook.cpp", (3, 11), (3, 11)),
    ("c_profilefunc of each thread", "calls into C", "py311/profile_hook.cpp", (3, 11), (3, 11)),
    ("sys.monitoring tool id", "all calls", "monitoring.cpp", (3, 12), (3, 15)),
    ("first digit of an int", "offsets of call instructions", "c_call_instructions.h", (3, 12), (3, 15)),
    ("co_extra slot", "sites of functions, read from the code object", "code_sites.h", (3, 11), (3, 13)),
    ("co_extra slot through its function", "sites of functions", "code_sites.h", (3, 14), (3, 15)),
    ("_co_firsttraceable", "starts of generators", "monitoring.cpp", (3, 11), (3, 15)),
    ("_PyInterpreterFrame", "tracebacks, first arguments, generators", "frame_layout.h", (3, 11), (3, 15)),
    ("cframe of a thread", "its innermost frame", "frame_layout.h", (3, 11), (3, 12)),
    ("current_frame of a thread", "its innermost frame", "frame_layout.h", (3, 13), (3, 15)),
    ("_asyncio functions", "names of tasks", "asyncio_tasks.cpp", (3, 11), (3, 15)),
)


def used(version: tuple[int, int]) -> list[str]:
    """Return the parts that the package uses on a version."""
    return [part for part, _, _, first, last in INTERNALS if first <= version <= last]
