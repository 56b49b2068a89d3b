"""emit_nvtx and explicit marks, received by a collector that NVTX loads like its tools; both kinds of emitters."""

import pytest
from collectors import needs_nvtx, run

import marey
from marey import emit_itt, emit_nvtx, nvtx


@needs_nvtx
def test_every_range_goes_to_nvtx_with_its_id(tmp_path):
    """upstream: test_profiler_emit_nvtx"""
    _, lines = run(
        """
        with emit_nvtx():
            with marey.record_function("outer"):
                with marey.record_function_fast("inner", [array.array("d", [1, 2])]):
                    marey.instant("here")
            marey.begin("by begin")
            marey.end()
        with marey.record_function("after"):
            pass
        """,
        "nvtx_collector",
        tmp_path,
    )
    assert lines == [
        "1 push outer, op_id = 1",
        "1 push inner, op_id = 2",
        "1 mark here",
        "1 pop",
        "1 pop",
        "1 push by begin, op_id = 3",
        "1 pop",
    ]


@needs_nvtx
def test_sizes_have_an_entry_for_each_argument_in_the_order_received(tmp_path):
    """upstream: test_custom_module_input_op_ids (CUDA), the part without modules"""
    _, lines = run(
        """
        grid = memoryview(bytes(24)).cast("B", (2, 3, 4))
        row = array.array("d", [1, 2, 3])
        with emit_nvtx(record_shapes=True):
            with marey.record_function_fast("f", ["text", grid, 5, [row, grid], None, [1, 2], row]):
                pass
            with marey.record_function_fast("none"):
                pass
        """,
        "nvtx_collector",
        tmp_path,
    )
    unknown = ", ".join(["(0,-1)"] * 8)
    assert lines == [
        "1 push f, op_id = 1, sizes = [[], [2, 3, 4], [], [3], [2, 3, 4], [], [], [3]], " f"input_op_ids = [{unknown}]",
        "1 pop",
        "1 push none, op_id = 2",
        "1 pop",
    ]


@needs_nvtx
def test_a_range_across_the_start_or_the_stop_pops_no_other_range(tmp_path):
    _, lines = run(
        """
        before = marey.record_function("before")
        across = marey.record_function("across")
        nvtx.range_push("mine")
        before.__enter__()
        with emit_nvtx():
            before.__exit__(None, None, None)
            across.__enter__()
        nvtx.range_push("later")
        across.__exit__(None, None, None)
        nvtx.range_pop()
        nvtx.range_pop()
        """,
        "nvtx_collector",
        tmp_path,
    )
    assert lines == [
        "1 push mine",
        "1 push across, op_id = 1",
        "1 pop",
        "1 push later",
        "1 pop",
        "1 pop",
    ]


@needs_nvtx
def test_a_range_of_another_thread_across_the_stop_is_popped_when_it_ends(tmp_path):
    _, lines = run(
        """
        inside, stopped = threading.Event(), threading.Event()
        def work():
            with marey.record_function("long"):
                inside.set()
                stopped.wait()
        thread = threading.Thread(target=work)
        with emit_nvtx():
            thread.start()
            inside.wait()
        nvtx.mark("stopped")
        stopped.set()
        thread.join()
        """,
        "nvtx_collector",
        tmp_path,
    )
    assert lines == ["1 push long, op_id = 1", "2 mark stopped", "1 pop"]


@needs_nvtx
def test_ranges_that_end_out_of_order_are_popped_in_order(tmp_path):
    _, lines = run(
        """
        a, b = marey.record_function("a"), marey.record_function("b")
        with emit_nvtx():
            a.__enter__()
            b.__enter__()
            a.__exit__(None, None, None)
            nvtx.mark("a has ended")
            b.__exit__(None, None, None)
        """,
        "nvtx_collector",
        tmp_path,
    )
    assert lines == ["1 push a, op_id = 1", "1 push b, op_id = 2", "1 mark a has ended", "1 pop", "1 pop"]


@needs_nvtx
def test_explicit_ranges_and_an_emitter_do_not_interfere(tmp_path):
    out, lines = run(
        """
        with emit_nvtx():
            with marey.record_function("range"):
                print(nvtx.range_pop())
                print(nvtx.range_push("hand"))
            print(nvtx.range_pop())
            print(nvtx.range_pop())
        """,
        "nvtx_collector",
        tmp_path,
    )
    assert out.split() == ["-1", "1", "1", "-1"]
    assert lines == ["1 push range, op_id = 1", "1 push hand", "1 pop", "1 pop"]


@needs_nvtx
def test_an_emitter_and_a_session_run_together(tmp_path):
    out, lines = run(
        """
        session = marey.Session()
        session.start()
        with emit_nvtx():
            with marey.record_function("both"):
                pass
        trace = session.stop()
        print(len(trace))
        """,
        "nvtx_collector",
        tmp_path,
    )
    assert out == "1\n"
    assert lines == ["1 push both, op_id = 1", "1 pop"]


@needs_nvtx
def test_explicit_nvtx_marks_and_ranges(tmp_path):
    out, lines = run(
        """
        nvtx.mark("point")
        print(nvtx.range_push("one"), nvtx.range_push("two"), nvtx.range_pop(), nvtx.range_pop(), nvtx.range_pop())
        handle = nvtx.range_start("anywhere")
        on_a_thread(lambda: nvtx.range_end(handle))
        with nvtx.range("{} of {total}", 1, total=2):
            pass
        @nvtx.range("called")
        def function():
            nvtx.mark("in it")
        function()
        """,
        "nvtx_collector",
        tmp_path,
    )
    assert out.split() == ["0", "1", "1", "0", "-1"]
    assert lines == [
        "1 mark point",
        "1 push one",
        "1 push two",
        "1 pop",
        "1 pop",
        "1 start 1 anywhere",
        "2 end 1",
        "1 push 1 of 2",
        "1 pop",
        "1 push called",
        "1 mark in it",
        "1 pop",
    ]


@pytest.mark.skipif(nvtx.is_available(), reason="built with NVTX's header")
def test_nvtx_reports_that_it_is_unavailable():
    with pytest.raises(marey.Error, match="NVTX is not available: .*nvToolsExt.h"):
        emit_nvtx().__enter__()
    for use in (nvtx.mark, nvtx.range_push, nvtx.range_start):
        with pytest.raises(marey.Error, match="NVTX is not available"):
            use("x")


EMITTERS = [emit_itt, pytest.param(emit_nvtx, marks=needs_nvtx)]


@pytest.mark.parametrize("emitter", EMITTERS)
def test_without_a_tool_emitters_do_nothing(emitter):
    """upstream: test_profiler_emit_nvtx, test_profiler_emit_itt"""
    with emitter(record_shapes=True) as entered:
        assert isinstance(entered, emitter)
        with marey.record_function("x"):
            pass


@pytest.mark.parametrize("emitter", EMITTERS)
def test_the_same_emitter_entered_twice_is_an_error(emitter):
    one = emitter()
    with one:
        with pytest.raises(marey.Error, match="not reentrant"):
            one.__enter__()
    with pytest.raises(marey.Error, match="not reentrant"):
        one.__enter__()


@pytest.mark.parametrize("emitter", EMITTERS)
def test_two_emitters_of_a_kind_at_once_are_an_error(emitter):
    with emitter():
        with pytest.raises(marey.Error, match="emitter is already running"):
            emitter().__enter__()
    with emitter():
        pass


@pytest.mark.parametrize("emitter", EMITTERS)
def test_an_emitter_that_is_not_enabled_is_inert(emitter):
    from marey.profiler import is_enabled as _is_profiler_enabled

    one = emitter(enabled=False)
    with one, one:
        assert not _is_profiler_enabled()


@pytest.mark.parametrize("emitter", EMITTERS)
def test_a_profiler_counts_as_enabled_while_an_emitter_lives(emitter):
    from marey.profiler import is_enabled as _is_profiler_enabled

    with emitter():
        assert _is_profiler_enabled()
    assert not _is_profiler_enabled()
    forgotten = emitter().__enter__()
    assert _is_profiler_enabled()
    del forgotten
    assert not _is_profiler_enabled()
    with pytest.raises(ZeroDivisionError):
        with emitter():
            1 / 0
    assert not _is_profiler_enabled()


@needs_nvtx
def test_a_forked_child_emits_too(tmp_path):
    _, lines = run(
        """
        import os
        with emit_nvtx(record_shapes=True):
            with marey.record_function("parent"):
                child = os.fork()
                if child == 0:
                    with marey.record_function_fast("child", [1]):
                        pass
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        """,
        "nvtx_collector",
        tmp_path,
    )
    assert sorted(line[2:9] for line in lines) == ["pop", "pop", "push ch", "push pa"]


def test_the_text_of_a_range_goes_to_an_observer_without_any_session(tmp_path):
    from marey import ExecutionTraceObserver

    observer = ExecutionTraceObserver().register_callback(tmp_path / "x.json")
    observer.start()
    with marey.record_function("range", "its text"):
        pass
    observer.stop()
    observer.unregister_callback()
    assert '"its text"' in (tmp_path / "x.json").read_text().replace('\\"', '"')
