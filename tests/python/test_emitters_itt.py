"""emit_itt and explicit marks, received by collectors that are loaded as documented for ITT."""

from pathlib import Path

import pytest
from collectors import run

from marey import _marey  # private: its file


@pytest.mark.parametrize("collector", ["itt_collector", "itt_collector_old"])
def test_every_range_goes_to_itt_as_a_task_with_the_text_as_metadata(tmp_path, collector):
    """upstream: test_profiler_emit_itt, test_custom_module_input_op_ids (ITT)"""
    _, lines = run(
        """
        with emit_itt(record_shapes=True):
            with marey.record_function("outer"):
                with marey.record_function_fast("inner", [array.array("d", [1, 2]), 3]):
                    marey.instant("here")
        with marey.record_function("after"):
            pass
        """,
        collector,
        tmp_path,
    )
    assert lines == [
        "1 domain marey",
        "1 begin marey:outer",
        "1 metadata 0 details=outer, op_id = 1",
        "1 begin marey:inner",
        "1 metadata 0 details=inner, op_id = 2, sizes = [[2], []], input_op_ids = [(0,-1), (0,-1)]",
        "1 begin marey:here",
        "1 end marey",
        "1 end marey",
        "1 end marey",
    ]


def test_explicit_itt_marks_and_ranges(tmp_path):
    out, lines = run(
        """
        print(itt.is_available())
        itt.mark("point")
        print(itt.range_push("one"), itt.range_push("two"), itt.range_pop(), itt.range_pop(), itt.range_pop())
        handle = itt.range_start("anywhere")
        on_a_thread(lambda: itt.range_end(handle))
        with itt.range("{}", "formatted"):
            pass
        """,
        "itt_collector",
        tmp_path,
    )
    assert out.split() == ["True", "0", "1", "1", "0", "-1"]
    assert lines == [
        "1 domain marey",
        "1 begin marey:point",
        "1 end marey",
        "1 begin marey:one",
        "1 begin marey:two",
        "1 end marey",
        "1 end marey",
        "1 overlapped 1 marey:anywhere",
        "2 overlapped end 1 marey",
        "1 begin marey:formatted",
        "1 end marey",
    ]


def test_a_collector_that_cannot_be_loaded_makes_itt_unavailable():
    out, _ = run(
        """
        print(itt.is_available())
        for use in (lambda: emit_itt().__enter__(), lambda: itt.mark("x"), lambda: itt.range_push("x")):
            try:
                use()
            except marey.Error as error:
                print(error)
        print(_is_profiler_enabled())
        """,
        INTEL_LIBITTNOTIFY64="/nowhere/libnothing.so",
    )
    first, *errors, last = out.splitlines()
    assert (first, last) == ("False", "False")
    assert len(errors) == 3
    assert all(text.startswith("ITT is not available: ") and "/nowhere/libnothing.so" in text for text in errors)


def test_a_library_that_is_not_a_collector_makes_itt_unavailable():
    library = next(iter(Path(_marey.__file__).parent.glob("_marey*.so")))
    out, _ = run("print(itt.is_available())", INTEL_LIBITTNOTIFY64=str(library))
    assert out == "False\n"
