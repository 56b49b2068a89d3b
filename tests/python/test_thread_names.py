"""Threads have the names that the program gives them."""

import sys
import threading

from call_trees import MODES, leaf

import marey


def names(prof):
    return {thread["thread"] for thread in prof.trace.info()["threads"]}


@MODES
def test_threads_started_while_calls_are_recorded_have_their_python_names(c_calls):
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        thread = threading.Thread(target=leaf, name="the worker \u00e9")
        thread.start()
        thread.join()
    assert "the worker \u00e9" in names(prof)


@MODES
def test_running_threads_have_their_python_names_too(c_calls):
    begun, go = threading.Event(), threading.Event()

    def work():
        begun.set()
        go.wait()
        leaf()

    thread = threading.Thread(target=work, name="early")
    thread.start()
    begun.wait()
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        go.set()
        thread.join()
    assert "early" in names(prof)


@MODES
def test_a_thread_without_a_name_keeps_its_system_name(c_calls):
    class Odd(threading.Thread):
        def __init__(self):
            super().__init__()
            if sys.version_info < (3, 14):
                del self.__dict__["_name"]
            else:  # it reads the name itself; a thread without the attribute does not start
                self._name = None

        name = property(lambda self: 1 / 0)

        def run(self):
            leaf()

    def quiet(arguments):
        pass

    hook, threading.excepthook = threading.excepthook, quiet
    try:
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            thread = Odd()
            thread.start()
            thread.join()
    finally:
        threading.excepthook = hook
    assert len(prof.trace) > 0
