"""Every thread: those that run at the start, those born later, those that C makes."""

import _thread
import threading

import call_trees
from call_trees import MODES, count, leaf

import kymo


@MODES
def test_every_thread_is_seen_those_born_later_too(c_calls):
    go, done = threading.Event(), threading.Event()

    def early():
        go.wait()
        leaf()
        done.set()

    running = threading.Thread(target=early)
    running.start()
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        go.set()
        running.join()
        call_trees.in_thread(leaf)
        finished = _thread.allocate_lock()
        finished.acquire()

        def bare():
            leaf()
            finished.release()

        _thread.start_new_thread(bare, ())
        finished.acquire()
    assert count(prof, "leaf") == 3
    assert len({event.thread for event in prof.events() if event.name.endswith(": leaf")}) == 3
    assert any(event.name.endswith("<locals>.early") for event in prof.events())
