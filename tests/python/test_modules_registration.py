"""register_module_type: invalid arguments, and sessions that stop while an object is being read."""

import gc

import pytest
from tree_walk import depth_first

import marey

MODES = pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])


class Layer:
    def __call__(self, x):
        return x


def test_invalid_registrations_are_rejected():
    for arguments in ({"kind": "table"}, {"call": "nothing"}):
        with pytest.raises(ValueError):
            marey.register_module_type(Layer, **arguments)
    for arguments in ({"call": len}, {"name": "x"}, {"parameters": 3}, {"arrays": ("x",)}):
        with pytest.raises(TypeError):
            marey.register_module_type(Layer, **arguments)
    with pytest.raises(TypeError):
        marey.register_module_type(Layer())


def test_a_session_stopped_while_an_object_is_read_is_harmless():
    class Stopping:
        def __call__(self):
            return 7

    for c_calls in (False, True):
        prof = marey.profile(with_stack=True, c_calls=c_calls)
        marey.register_module_type(Stopping, parameters=lambda own, prof=prof: prof.stop())
        try:
            prof.start()
            assert Stopping()() == 7
        finally:
            marey.unregister_module_type(Stopping)
        with marey.profile(with_stack=True, c_calls=c_calls) as after:
            Layer()(1)
        assert any(node.name.endswith("Layer.__call__") for node in depth_first(after.tree()))


@MODES
def test_a_session_stopped_by_a_collection_while_an_object_is_registered_is_harmless(c_calls):
    """Creating the weak reference to an object may start a garbage collection, which may run any code."""

    class Met:
        def __call__(self):
            return 7

    class Garbage:
        def __init__(self):
            self.own = self

        def __del__(self):
            prof.stop()

    def name(own):
        Garbage()
        gc.enable()
        return "Met"

    before = gc.get_threshold()
    marey.register_module_type(Met, name=name)
    gc.disable()
    try:
        prof = marey.profile(with_stack=True, c_calls=c_calls)
        prof.start()
        met = Met()
        gc.set_threshold(1)
        assert met() == 7
    finally:
        gc.set_threshold(*before)
        gc.enable()
        marey.unregister_module_type(Met)
    gc.collect()
    with marey.profile(with_stack=True, c_calls=c_calls) as after:
        Layer()(1)
    assert any(node.name.endswith("Layer.__call__") for node in depth_first(after.tree()))
