"""Marking ranges: with-blocks, the decorator, begin and end."""

import contextlib
import gc
import sys
import threading
import weakref

import pytest
from range_rows import range_rows
from recorded import BEGAN_BEFORE, UNFINISHED, is_async, recording

import marey


def test_blocks_nest_as_the_program_does():
    """upstream: test_record_function"""
    with recording() as seen:
        with marey.record_function("outer"):
            with marey.record_function("inner"):
                pass
            with marey.record_function("inner"):
                pass
    assert seen.names() == ["outer", "inner", "inner"]
    assert [seen.parent(row) for row in seen.rows] == [None, "outer", "outer"]


def test_a_block_that_raises_ends_its_range_and_lets_the_exception_through():
    with recording() as seen:
        with pytest.raises(ZeroDivisionError):
            with marey.record_function("outer"):
                with marey.record_function("inner"):
                    raise ZeroDivisionError
        with marey.record_function("after"):
            pass
    assert [seen.parent(row) for row in seen.rows] == [None, "outer", None]
    assert not any(row["flags"] for row in seen.rows)


def test_args_are_an_input_when_inputs_are_recorded():
    """upstream: test_record_function"""
    for wanted in (True, False):
        with recording(record_shapes=wanted, concrete_inputs=wanted) as seen:
            with marey.record_function("x", "some text"):
                pass
            with marey.record_function("y", args=None):
                pass
        assert seen.one("x")["inputs"] == (["some text"] if wanted else [])
        assert seen.one("y")["inputs"] == []


def test_names_and_args_must_be_strings():
    with pytest.raises(TypeError, match="name must be a str, not int"):
        marey.record_function(3)
    with pytest.raises(TypeError, match="args must be a str or None, not list"):
        marey.record_function("x", [])
    with pytest.raises(TypeError):
        marey.record_function()
    with pytest.raises(TypeError):
        marey.record_function("x", "y", "z")


@pytest.mark.parametrize("on", [True, False])
def test_leaving_without_entering_is_an_error(on):
    range_ = marey.record_function("x")
    with recording() if on else pytest.MonkeyPatch.context():
        with pytest.raises(marey.Error, match="called without __enter__"):
            range_.__exit__(None, None, None)


def test_an_object_that_is_entered_again_nests():
    with recording() as seen:
        range_ = marey.record_function("x")
        with range_:
            with range_:
                with range_:
                    pass
        with range_:
            pass
    assert [row["depth"] for row in seen.rows] == [0, 1, 2, 0]


def test_any_text_is_kept_as_a_name():
    names = ["", "a b", "\N{SNOWMAN}", "x" * 3000, 'q"\\', "\udc80"]
    with recording() as seen:
        for name in names:
            with marey.record_function(name):
                pass
    assert seen.names()[:5] == names[:5]
    assert "dc80" in seen.names()[5]


def test_a_range_open_at_the_start_or_the_stop_is_marked():
    before = marey.record_function("before")
    first, second = marey.Session(), marey.Session()
    first.start()
    before.__enter__()
    with recording() as seen:
        across = marey.record_function("across")
        across.__enter__()
    before.__exit__(None, None, None)
    across.__exit__(None, None, None)
    first.discard()
    assert seen.one("before")["flags"] == BEGAN_BEFORE | UNFINISHED
    assert seen.one("across")["flags"] == UNFINISHED
    assert seen.parent(seen.one("across")) == "before"
    second.start()
    assert len(second.stop()) == 0


def test_profiling_that_starts_or_stops_inside_a_range_does_not_affect_later_ones():
    """Quirk Q5: upstream trips over an assertion here."""
    for kind in (marey.record_function, marey.record_function_fast):
        outside = kind("outside")
        with outside:
            session = marey.Session()
            session.start()
            inside = kind("inside")
            inside.__enter__()
        assert len(session.stop()) == 1
        inside.__exit__(None, None, None)
        with recording() as seen:
            with kind("later"):
                pass
        assert seen.names() == ["later"]
        assert seen.rows[0]["depth"] == 0


def test_an_open_range_whose_object_is_destroyed_ends_then():
    with recording() as seen:
        range_ = marey.record_function("dropped")
        range_.__enter__()
        del range_
        gc.collect()
        with marey.record_function("after"):
            pass
    assert seen.one("dropped")["flags"] == 0
    assert seen.parent(seen.one("after")) is None


def test_ranges_left_out_of_order_are_async_and_affect_no_others():
    """upstream: test_record_function_multithreaded"""
    with recording() as seen:
        first, second = marey.record_function("first"), marey.record_function("second")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        with marey.record_function("third"):
            pass
        second.__exit__(None, None, None)
    assert is_async(seen.one("first"))
    assert not is_async(seen.one("second"))
    assert seen.parent(seen.one("third")) == "second"


def leave(range_):
    range_.__exit__(None, None, None)


def on_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    "make",
    [
        lambda: marey.record_function("x"),
        lambda: marey.record_function("x", "text"),
        lambda: marey.record_function_fast("x"),
        lambda: marey.record_function_fast("x", [1, "two"], {"key": 3}),
    ],
)
def test_a_range_left_on_another_thread_is_async_on_the_thread_that_entered(make):
    with recording(record_shapes=True, concrete_inputs=True) as seen:
        with marey.record_function("around"):
            range_ = make()
            range_.__enter__()
            with marey.record_function("inside"):
                pass
            on_thread(leave, range_)
            with marey.record_function("after"):
                with marey.record_function("deeper"):
                    pass
        on_thread(lambda: marey.record_function("there").__enter__())
    row = seen.one("x")
    assert is_async(row) and not row["flags"] & UNFINISHED
    assert row["thread"] == seen.one("around")["thread"] != seen.one("there")["thread"]
    assert seen.parent(seen.one("after")) == "around"
    assert seen.parent(seen.one("deeper")) == "after"
    assert seen.parent(seen.one("inside")) == "around"
    assert row["start_ns"] + row["duration_ns"] <= seen.one("after")["start_ns"]
    assert row["start_ns"] <= seen.one("inside")["start_ns"]
    if isinstance(range_, marey.record_function_fast) and row["keywords"]:
        assert row["inputs"] == [1, "two"] and row["keywords"] == {"key": 3}


def test_a_range_left_on_another_thread_has_ended_for_an_immediate_stop():
    """The thread that entered records nothing after the end."""
    session = marey.Session()
    session.start()
    range_ = marey.record_function("x")
    range_.__enter__()
    on_thread(leave, range_)
    for trace in (session.snapshot(), session.stop()):
        (row,) = range_rows(trace)
        assert row["flags"] == 4
    with recording() as seen:
        with marey.record_function("later"):
            pass
    assert seen.names() == ["later"] and seen.rows[0]["depth"] == 0


def test_a_range_left_on_another_thread_is_in_the_capture_with_its_end(tmp_path):
    path = str(tmp_path / "x.marey")
    inner = marey.Session()
    session = marey.Session()
    session.start(output=path)
    inner.start()
    range_ = marey.record_function_fast("x", [], {"key": "value"})
    range_.__enter__()
    on_thread(leave, range_)
    inner.discard()
    session.stop()
    (row,) = range_rows(marey.load(path))
    assert row["flags"] == 4 and row["keywords"] == {"key": "value"}


def test_many_ranges_entered_here_and_left_there():
    with recording() as seen:
        for _ in range(200):
            ranges = [marey.record_function(f"r{i}") for i in range(4)]
            for range_ in ranges:
                range_.__enter__()
            threads = [threading.Thread(target=leave, args=(range_,)) for range_ in ranges]
            for thread in threads:
                thread.start()
            with marey.record_function("mine"):
                pass
            for thread in threads:
                thread.join()
    assert len(seen.named("mine")) == 200
    for i in range(4):
        rows = seen.named(f"r{i}")
        assert len(rows) == 200
        assert all(is_async(row) and not row["flags"] & UNFINISHED for row in rows)


def test_begin_and_end_mark_what_lies_between():
    with recording() as seen:
        marey.begin("a")
        marey.begin("b")
        with marey.record_function("c"):
            pass
        marey.end()
        marey.end()
        marey.end()  # an extra end() is not an error
    assert [seen.path(row) for row in seen.rows] == [("a",), ("a", "b"), ("a", "b", "c")]


def test_ranges_begun_while_off_stay_balanced():
    marey.begin("off")
    with recording() as seen:
        marey.begin("on")
        marey.end()
        marey.end()  # ends the range that began before
        marey.begin("next")
    marey.end()
    assert seen.names() == ["on", "next"]
    assert [row["depth"] for row in seen.rows] == [0, 0]


def test_invalid_arguments_of_marks_are_errors():
    for call in (
        lambda: marey.begin(1),
        lambda: marey.instant(None),
        lambda: marey.counter(1, 2),
        lambda: marey.counter("x", "y"),
        lambda: marey.counter("x"),
        lambda: marey.thread_name(3),
    ):
        with pytest.raises(TypeError):
            call()


def test_subclasses_of_record_function_work():
    class Mine(marey.record_function):
        def __enter__(self):
            super().__enter__()
            return "mine"

    with recording() as seen:
        with Mine("x") as got:
            assert got == "mine"
    assert seen.names() == ["x"]


def test_reference_counts_stay_as_they_were():
    name = "".join(["a", " name of its own"])

    def record():
        session = marey.Session()
        session.start()
        range_ = marey.record_function(name, name)
        with range_, range_:
            pass
        marey.begin(name)
        marey.end()
        with marey.record_function_fast(name, [name], {name: name}):
            pass
        marey.record_function(name)(leave)
        session.stop()

    record()  # fills caches
    gc.collect()
    before = sys.getrefcount(name), sys.getrefcount(None), sys.getrefcount(marey.record_function)
    for _ in range(1000):
        record()
    gc.collect()
    after = sys.getrefcount(name), sys.getrefcount(None), sys.getrefcount(marey.record_function)
    assert all(abs(a - b) <= 24 for a, b in zip(after, before)), (before, after)


def test_names_of_derived_types_keep_nothing_alive():
    class Name(str):
        pass

    gone = []
    for make in (marey.record_function, marey.record_function_fast):
        name = Name("derived")
        name.range = make(name)
        gone.append(weakref.ref(name))
        with recording() as seen, name.range:
            marey.begin(name)
            marey.end()
        assert set(seen.names()) == {"derived"}
        del name
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def call_paths(nodes, path=()):
    """The path of names of every range and call, without modules and files."""
    for node in nodes:
        name = node.name.rpartition(".")[2].rpartition(": ")[2]
        yield (*path, name)
        yield from call_paths(node.children, (*path, name))


@pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])
def test_a_range_that_a_context_manager_opens_and_closes_stays_in_the_nesting(c_calls):
    """It is the calls of __enter__ and __exit__ that overlap it."""

    class Around:
        def __enter__(self):
            self.open()

        def open(self):
            self.range = marey.record_function("around")
            self.range.__enter__()

        def __exit__(self, *_):
            self.close()
            len(())  # a call in the place that the calls of the range moved to

        def close(self):
            self.range.__exit__(None, None, None)
            len(())

    def inside():
        pass

    def outside():
        pass

    def work():
        for _ in range(3):
            with Around():
                inside()
            outside()

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        work()

    found = list(call_paths(prof.tree()))
    assert [path[-3:] for path in found if path[-1] == "inside"] == [("work", "around", "inside")] * 3
    assert [path[-2:] for path in found if path[-1] == "outside"] == [("work", "outside")] * 3
    # Each is shown only as far as it is outside of the range.
    for name, child in (("__enter__", "open"), ("__exit__", "close")):
        assert [path[-2:] for path in found if path[-1] == name] == [("work", name)] * 3
        assert [path[-3:] for path in found if path[-1] == child] == [("work", name, child)] * 3
    assert not [row for row in prof.events() if row.is_async]


def test_a_range_in_a_generator_context_manager_encloses_the_with_block():
    @contextlib.contextmanager
    def around():
        with marey.record_function("around"):
            yield

    def inside():
        pass

    def work():
        for _ in range(3):
            with around():
                inside()

    with marey.profile(with_stack=True, c_calls=False) as prof:
        work()

    found = list(call_paths(prof.tree()))
    assert [path[-3:] for path in found if path[-1] == "inside"] == [("work", "around", "inside")] * 3
    assert not [row for row in prof.events() if row.is_async]


@pytest.mark.filterwarnings("ignore:only the events of the last cycle")
@pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])
def test_calls_running_when_the_first_step_begins_enclose_it(c_calls):
    found = []

    def keep(prof):
        found.append(list(call_paths(prof.tree())))

    def inside():
        pass

    def work():
        plan = marey.schedule(wait=0, warmup=1, active=2, repeat=2)
        options = {"schedule": plan, "with_stack": True, "c_calls": c_calls, "on_trace_ready": keep}
        with marey.profile(**options) as prof:
            for _ in range(6):
                with marey.record_function("mine"):
                    inside()
                prof.step()

    work()
    for first, paths in zip((1, 4), found, strict=True):
        expected = [("work", f"ProfilerStep#{step}", "mine", "inside") for step in (first, first + 1)]
        assert [path[-4:] for path in paths if path[-1] == "inside"] == expected


def test_names_are_right_in_every_session_that_uses_them(tmp_path):
    @marey.record_function("decorated")
    def decorated():
        pass

    fast = marey.record_function_fast("fast")

    def use():
        for _ in range(2):
            decorated()
            with fast, marey.record_function("block"):
                pass
            marey.begin("begun")
            marey.end()

    expected = 2 * ["decorated", "fast", "block", "begun"]
    for number, options in enumerate([{}, {}, {"with_stack": True}, {"output": "file"}, {}]):
        if "output" in options:
            options = {"output": str(tmp_path / f"{number}.marey")}
        with recording(**options) as seen:
            use()
        assert [name for name in seen.names() if name in expected] == expected
        assert "(unknown)" not in seen.names()


def test_a_capture_has_only_the_names_of_its_sessions(tmp_path):
    with recording():
        for number in range(2000):
            with marey.record_function(f"earlier {number}"):
                pass
    path = tmp_path / "later.marey"
    with recording(output=str(path)):
        with marey.record_function("earlier 5"):
            pass
    assert path.read_bytes().count(b"earlier ") == 1
