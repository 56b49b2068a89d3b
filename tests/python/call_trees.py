"""Call trees: of a program, as a plain sys.setprofile reference records it, and of a trace."""

import functools
import subprocess
import sys
import textwrap
import threading
import types

import pytest
from range_rows import range_rows

from marey import RecordScope

# The values of c_calls, and whether the trace then has every call into C that sys.setprofile reports.
MODES = pytest.mark.parametrize("c_calls", [False, True, "all"], ids=["python", "with_c", "all_c"])


def has_every_c_call(c_calls):
    return c_calls == "all" or (bool(c_calls) and sys.version_info < (3, 12))


class Call:
    """One call: its name and its callees, in order."""

    def __init__(self, name):
        self.name = name
        self.calls = []

    def as_tuple(self):
        return (self.name, tuple(call.as_tuple() for call in self.calls))


def name_of_code(code):
    return f"{code.co_qualname}:{code.co_firstlineno}"


def reference(program, with_c=False):
    """The calls that `program()` makes on this thread, as sys.setprofile reports them."""
    root = Call("root")
    stack = [root]

    def hook(frame, event, arg):
        if event == "call":
            stack.append(Call(name_of_code(frame.f_code)))
            stack[-2].calls.append(stack[-1])
        elif event == "return" and len(stack) > 1:
            stack.pop()
        elif event == "c_call" and with_c:
            stack.append(Call(arg.__name__))
            stack[-2].calls.append(stack[-1])
        elif event in ("c_return", "c_exception") and with_c and len(stack) > 1:
            stack.pop()

    sys.setprofile(hook)
    try:
        program()
    finally:
        sys.setprofile(None)
    program_name = name_of_code(program.__code__)
    return next(call.as_tuple() for call in root.calls if call.name == program_name)


def rows(prof):
    """The ranges of a profiler's trace, each under its parent's index."""
    return range_rows(prof.trace)


def short_name(name):
    """`qualified name:line` of a Python function; the last part of the name of a C function."""
    head, separator, function = name.partition("): ")
    if separator:
        return f"{function}:{head.rpartition('(')[2]}"
    return name.rpartition(".")[2]


@functools.cache
def is_reported(name):
    """Whether sys.setprofile reports calls of the C callable of this name: built-in functions and methods only.

    On 3.12 and later the trace has more: classes, slots and objects of C.
    """
    parts = name.split(".")
    for cut in range(len(parts) - 1, -1, -1):
        found = sys.modules.get(".".join(parts[:cut]) or "builtins")
        if found is None:
            continue
        for part in parts[cut:]:
            found = vars(found).get(part) if isinstance(found, type) else getattr(found, part, None)
        if found is not None:
            return isinstance(getattr(found, "__func__", found), REPORTED)
    return len(parts) > 1  # a function that its module does not show; classes of C may have no module


REPORTED = (types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType)


def recorded(prof, program, with_c=False):
    """The same for each call of `program` in a trace."""
    wanted = name_of_code(program.__code__)
    calls, found = [], []
    for row in rows(prof):  # parents come first
        parent = calls[row["parent"]] if row["parent"] is not None else None
        is_left_out = row["scope"] == RecordScope.C_FUNCTION and not (with_c and is_reported(row["name"]))
        if is_left_out or row["name"] == "Python GC":
            calls.append(parent)  # its callees become those of its caller
            continue
        calls.append(Call(short_name(row["name"])))
        if parent is not None:
            parent.calls.append(calls[-1])
        if calls[-1].name == wanted:
            found.append(calls[-1])
    return [call.as_tuple() for call in found]


def in_thread(work):
    """Runs `work` on a new thread and waits for it."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def make_module(name, file, source, **members):
    """The namespace of a module that no file holds."""
    scope = {"__name__": name, **members}
    exec(compile(source, file, "exec"), scope)
    return scope


def leaf():
    return 1


def twice():
    leaf()
    leaf()


def names(prof):
    return [row["name"] for row in rows(prof)]


def count(prof, function):
    """How often a function of this name was called."""
    return sum(name.endswith(f": {function}") for name in names(prof))


def problems(prof):
    """The codes of a trace's problems."""
    return [code for code, _, _ in prof.trace.problems]


def run_program(text, code=0):
    """Run a program in a separate interpreter and return its output."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr[-2000:]
    return done.stdout
