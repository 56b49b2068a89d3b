"""record_function_fast: values, reuse, mistakes."""

import array
import warnings

import pytest
from recorded import recording

import marey

FUNCTION, USER = 0, 7


class Unknown:
    pass


def test_a_fast_range_is_made_once_and_entered_often():
    """upstream: test_record_function_fast (R64)"""
    with recording() as seen:
        range_ = marey.record_function_fast("fast")
        for _ in range(3):
            with range_:
                pass
        with range_:
            with range_:
                pass
        with pytest.raises(ValueError):
            with range_:
                raise ValueError
    assert [row["depth"] for row in seen.rows] == [0, 0, 0, 0, 1, 0]
    assert {row["scope"] for row in seen.rows} == {FUNCTION}


def test_a_guarded_fast_range_records_each_call():
    """upstream: test_guarded_record_function_fast"""
    with recording() as seen:
        for i in range(4):
            if marey.is_recording():
                with marey.record_function_fast("guarded", [i], {"i": i}):
                    pass
    assert [row["keywords"] for row in seen.rows] == [{"i": i} for i in range(4)]


def test_values_are_kept_as_they_are():
    """upstream: test_record_function_fast (R63)"""
    inputs = [1, 2.5, True, "text", None, Unknown(), [1, 2], (3, "x"), array.array("f", [1, 2, 3])]
    with recording(record_shapes=True, concrete_inputs=True) as seen:
        for given in (inputs, tuple(inputs)):
            with marey.record_function_fast("x", given):
                pass
    for row in seen.rows:
        got = row["inputs"]
        assert got[:4] == [1, 2.5, True, "text"]
        assert got[4:6] == [None, None]  # values that cannot be kept keep their position
        assert got[6:8] == [[1, 2], [3, "x"]]
        assert got[8]["sizes"] == [3]


def test_keyword_values_of_every_kept_kind():
    keywords = {"i": 3, "f": 1.5, "b": True, "s": "text", "l": ["a", "b"], "t": ("c",), "big": 2**62, "empty": []}
    with recording() as seen:
        with marey.record_function_fast("x", None, keywords):
            pass
    assert seen.rows[0]["keywords"] == {**keywords, "t": ["c"]}


def test_a_keyword_value_that_cannot_be_kept_is_NULL_with_one_warning_for_its_key():
    """upstream: test_record_function_fast (kwargs of unsupported types) (R65)"""
    with recording() as seen, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            with marey.record_function_fast("x", keyword_values={"odd one": Unknown(), "odd list": [1], "n": 1}):
                pass
    assert seen.rows[0]["keywords"] == {"odd one": "NULL", "odd list": "NULL", "n": 1}
    assert sorted(str(w.message).split("'")[1] for w in caught) == ["odd list", "odd one"]


def test_a_warning_never_raises_in_the_program(run_python):
    out = run_python(
        "import marey\n"
        "s = marey.Session(); s.start()\n"
        "with marey.record_function_fast('x', [], {'k': object()}): print('inside')\n"
        "print(len(s.stop()))\n",
        "-W",
        "error",
    )
    assert out.split() == ["inside", "1"]


def test_a_stream_that_is_not_an_int_and_any_text_are_safe():
    text = 'quote " backslash \\ newline \n nul \0 \x1b'
    with recording() as seen, warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        with marey.record_function_fast("x", keyword_values={"stream": "seven", "text": text}):
            pass
        with marey.record_function_fast("y", keyword_values={"stream": 7}):
            pass
    assert seen.one("x")["keywords"]["text"] == text
    assert seen.one("x")["keywords"]["stream"] == "NULL"
    assert seen.one("y")["keywords"]["stream"] == 7


def test_the_scope_is_function_unless_the_keywords_select_user():
    with recording() as seen:
        with marey.record_function_fast("f", keyword_values={"scope": "other"}):
            pass
        with marey.record_function_fast("u", keyword_values={"scope": "user_scope"}):
            pass
    assert (seen.one("f")["scope"], seen.one("u")["scope"]) == (FUNCTION, USER)


def test_inputs_are_not_read_unless_they_are_recorded():
    """upstream: test_record_function_fast (no args without shapes)"""

    class Touchy:
        @property
        def __array_interface__(self):
            raise AssertionError("touched")

    with marey.record_function_fast("x", [Touchy()]):
        pass
    with recording() as seen:
        with marey.record_function_fast("x", [Touchy()]):
            pass
    assert seen.rows[0]["inputs"] == []


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((1,), "name must be a str, not int"),
        (("x", 3), "input_values must be a list or a tuple, not int"),
        (("x", {}), "input_values must be a list or a tuple, not dict"),
        (("x", [], []), "keyword_values must be a dict, not list"),
    ],
)
def test_wrong_types_are_errors_at_construction(arguments, text):
    with pytest.raises(TypeError, match=text):
        marey.record_function_fast(*arguments)


@pytest.mark.parametrize("on", [True, False])
def test_leaving_a_fast_range_without_entering_is_an_error(on):
    range_ = marey.record_function_fast("x")
    with recording() if on else pytest.MonkeyPatch.context():
        with pytest.raises(marey.Error, match="called without __enter__"):
            range_.__exit__(None, None, None)
        with range_:
            pass
        with pytest.raises(marey.Error):
            range_.__exit__(None, None, None)


def test_values_are_read_at_each_entry():
    inputs, keywords = [1], {"k": 1}
    range_ = marey.record_function_fast("x", inputs, keywords)
    with recording(record_shapes=True, concrete_inputs=True) as seen:
        with range_:
            pass
        inputs.append(2)
        keywords["k"] = 2
        with range_:
            pass
    assert [row["inputs"] for row in seen.rows] == [[1], [1, 2]]
    assert [row["keywords"] for row in seen.rows] == [{"k": 1}, {"k": 2}]


def test_arrays_of_any_library_are_described_without_their_data():
    numpy = pytest.importorskip("numpy")

    class OnDevice:
        shape = (2, 3)
        __cuda_array_interface__ = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}

    grid = numpy.zeros((4, 6), dtype=numpy.int16)
    with recording(record_shapes=True) as seen:
        with marey.record_function_fast("x", [grid, grid[::2, ::3], grid.T, numpy.float64(1), OnDevice(), b"bytes"]):
            pass
    got = seen.rows[0]["inputs"]
    assert [a["sizes"] for a in got[:3]] == [[4, 6], [2, 2], [6, 4]]
    assert got[1]["strides"] == [12, 3]
    assert got[4]["sizes"] == [2, 3] and got[4]["device"] == "cuda"


def test_inputs_that_change_the_list_or_leave_the_block_while_they_are_read():
    inputs = []

    class Emptying:
        @property
        def __array_interface__(self):
            inputs.clear()  # its list held the last reference to it
            return {"shape": (3,), "typestr": "<f4", "data": (4096, False)}

    class Leaving:
        @property
        def __array_interface__(self):
            if leaves:
                leaves.pop().__exit__(None, None, None)
            return {"shape": (5,), "typestr": "<f4", "data": (4096, False)}

    inputs += [Emptying(), Emptying(), [1] * 1000]
    leaving = marey.record_function_fast("left", [Leaving()])
    leaves = [leaving]
    with recording(record_shapes=True) as seen:
        with marey.record_function_fast("emptied", inputs):
            pass
        leaving.__enter__()
        with pytest.raises(marey.Error):
            leaving.__exit__(None, None, None)
        with leaving:
            pass
    assert [array["sizes"] for array in seen.one("emptied")["inputs"]] == [[3]]
    first, second = seen.named("left")
    assert first["flags"] == second["flags"] == 0 and first["depth"] == second["depth"] == 0


def test_an_array_that_withdraws_its_description_while_it_is_read():
    class Item:
        def __index__(self):
            described.clear()
            return 7

    described = {}

    class Fickle:
        __array_interface__ = described

    class Odd:
        __array_interface__ = {"shape": 5, "strides": 3}

    described.update(shape=[Item()], typestr="<f" + str(8), strides=[8], data=(int("4096"), False))
    with recording(record_shapes=True) as seen:
        with marey.record_function_fast("x", [Fickle(), Odd()]):
            pass
    fickle, odd = seen.rows[0]["inputs"]
    assert fickle["sizes"] == [7] and odd is None
