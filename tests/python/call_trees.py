"""Call trees: what a plain sys.setprofile reference sees of a program, and what a trace says."""

import sys
import threading

from kymo import _kymo


class Call:
    """One call: its name and what it called, in order."""

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
    return _kymo.range_rows(prof.trace)


def short_name(name):
    """`qualified name:line` of a Python function; the last part of the name of a C function."""
    head, separator, function = name.partition("): ")
    if separator:
        return f"{function}:{head.rpartition('(')[2]}"
    return name.rpartition(".")[2]


def recorded(prof, program):
    """The same for each call of `program` in a trace."""
    wanted = name_of_code(program.__code__)
    calls, found = [], []
    for row in rows(prof):  # parents come first
        calls.append(Call(short_name(row["name"])))
        if row["parent"] is not None:
            calls[row["parent"]].calls.append(calls[-1])
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
