"""Functions decorated with record_function: every call is a range."""

import pickle
import threading

import pytest
from recorded import recording

import marey


def test_the_decorator_marks_every_call():
    """upstream: test_record_function (decorator form)"""

    @marey.record_function("f")
    def f(a, /, b=2, *args, c, **kwargs):
        """doc"""
        return a, b, args, c, kwargs

    with recording() as seen:
        assert f(1, c=3) == (1, 2, (), 3, {})
        assert f(1, 5, 6, c=3, d=4) == (1, 5, (6,), 3, {"d": 4})
        with pytest.raises(TypeError):
            f()
    assert seen.names() == ["f"] * 3
    assert f.__name__ == "f" and f.__doc__ == "doc" and f.__wrapped__(1, c=0)[0] == 1
    import inspect

    assert str(inspect.signature(f)) == "(a, /, b=2, *args, c, **kwargs)"


def test_the_decorator_keeps_recursion_apart():
    """Quirk Q4: upstream's decorator shares one handle."""

    @marey.record_function("f")
    def f(n):
        return 1 if n == 0 else n * f(n - 1)

    with recording() as seen:
        assert f(5) == 120
    assert [row["depth"] for row in seen.rows] == list(range(6))


def test_the_decorator_keeps_threads_apart():
    """Quirk Q4"""
    barrier = threading.Barrier(4)

    @marey.record_function("f")
    def f():
        barrier.wait()

    with recording() as seen:
        threads = [threading.Thread(target=f) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({row["thread"] for row in seen.rows}) == 4
    assert not any(row["flags"] for row in seen.rows)


class Methods:
    @marey.record_function("method")
    def method(self, x):
        return self, x

    @staticmethod
    @marey.record_function("static inside")
    def static_inside(x):
        return x

    @marey.record_function("static outside")
    @staticmethod
    def static_outside(x):
        return x

    @classmethod
    @marey.record_function("class inside")
    def class_inside(cls, x):
        return cls, x

    @marey.record_function("class outside")
    @classmethod
    def class_outside(cls, x):
        return cls, x

    @property
    @marey.record_function("property")
    def value(self):
        return 7


def test_the_decorator_works_on_methods_of_every_kind():
    me = Methods()
    with recording() as seen:
        assert me.method(1) == (me, 1)
        assert Methods.method(me, 1) == (me, 1)
        assert me.static_inside(1) == Methods.static_inside(1) == 1
        assert me.static_outside(1) == Methods.static_outside(1) == 1
        assert me.class_inside(1) == Methods.class_inside(1) == (Methods, 1)
        assert me.class_outside(1) == Methods.class_outside(1) == (Methods, 1)
        assert me.value == 7
    expected = ["method", "static inside", "static outside", "class inside", "class outside"]
    assert seen.names() == [name for name in expected for _ in range(2)] + ["property"]


@marey.record_function("module level")
def module_level(x):
    return x + 1


@marey.record_function("module level", "with args")
def module_level_with_args(x):
    return x + 1


def test_a_decorated_function_can_be_pickled_and_copied():
    import copy

    for function in (module_level, module_level_with_args):
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function
        assert function(1) == 2


def test_the_decorator_passes_args_on():
    with recording(record_shapes=True, concrete_inputs=True) as seen:
        module_level_with_args(1)
    assert seen.rows[0]["inputs"] == ["with args"]


def test_only_callables_can_be_decorated():
    with pytest.raises(TypeError, match="can only decorate callables, not int"):
        marey.record_function("x")(3)
