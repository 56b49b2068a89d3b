"""Tracebacks of Python and native frames, and tracebacks in C++: an extension made as a user would make it."""

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from building import build_extensions

import marey
from marey import CapturedTraceback, _marey  # private: has_native_lines: what this build can do

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def extensions(tmp_path_factory):
    """Both extensions, built against the package."""
    folder = tmp_path_factory.mktemp("extensions")
    build_extensions(HERE / "traceback_extension", folder)
    sys.path.insert(0, str(folder))
    try:
        import traces_nanobind
        import traces_pybind11
    finally:
        sys.path.remove(str(folder))
    return traces_nanobind, traces_pybind11


@pytest.fixture
def cpp(extensions):
    return extensions[0]


def marks(frames, *wanted):
    """Return which of these names occur, in order, innermost first."""
    found = []
    for frame in frames:
        found += [name for name in wanted if frame["name"] == name or (not frame["python"] and name in frame["name"])]
    return found


def is_interpreter(frame):
    """Whether it is the interpreter's function that runs Python code.

    Compilers split it, and only its first part is an exported symbol. So in a binary without a symbol table, such as
    Debian's python3.14, the rest has no name.
    """
    path = Path(frame["filename"].rpartition("+")[0])
    if frame["name"] == "??" and "python" in path.name:
        sections = subprocess.run(["readelf", "--wide", "--sections", path], capture_output=True, text=True, check=True)
        return ".symtab" not in sections.stdout
    return not frame["python"] and "_PyEval_EvalFrameDefault" in frame["name"]


def test_python_and_native_frames_come_in_the_right_order(cpp):
    """S12: several Python calls share one native frame of the interpreter."""

    def innermost():
        return CapturedTraceback.extract(cpp=True)

    def inner():
        return innermost()

    def middle():
        return cpp.call_back(inner)

    def outer():
        return middle()

    def outermost():
        return cpp.call_back(outer)

    frames = outermost().symbolize()
    order = marks(frames, "innermost", "inner", "call_back", "middle", "outer", "outermost", "_PyEval_EvalFrameDefault")
    seen = [name for name in order if name != "_PyEval_EvalFrameDefault"]
    assert list(dict.fromkeys(seen)) == ["innermost", "inner", "call_back", "middle", "outer", "outermost"]
    assert seen.count("call_back") >= 2
    # Each group stands right before the interpreter's frame that runs it.
    at = [i for i, frame in enumerate(frames) if frame["name"] == "inner" and frame["python"]][0]
    assert is_interpreter(frames[at + 1])
    at = [i for i, frame in enumerate(frames) if frame["name"] == "outer" and frame["python"]][0]
    assert is_interpreter(frames[at + 1])
    # And nothing is lost: the Python frames alone are those of a capture without native ones.
    python_only = [f["name"] for f in frames if f["python"]]
    assert python_only[-3:] == [f.name for f in CapturedTraceback.extract().summary()][2::-1]


def test_generators_and_c_callbacks_appear_where_they_run(cpp):
    """S12"""

    def generated():
        yield cpp.call_back(lambda: CapturedTraceback.extract(cpp=True))

    def key(_):
        return next(generated())

    def sort():
        return list(map(key, [0]))[0]

    frames = sort().symbolize()
    assert [f["name"] for f in frames if f["python"]][:4] == ["<lambda>", "generated", "key", "sort"]
    order = list(dict.fromkeys(marks(frames, "<lambda>", "call_back", "generated", "key", "sort")))
    assert order == ["<lambda>", "call_back", "generated", "key", "sort"]


def test_native_frames_have_files_and_lines_if_compiled_with_debug_info(cpp):
    """S13"""
    if not _marey.has_native_lines():
        pytest.skip("built without elfutils, which provides lines")
    frames = cpp.call_back(lambda: CapturedTraceback.extract(cpp=True)).symbolize()
    ours = [f for f in frames if f["name"].startswith("(anonymous namespace)::call_back(")]
    assert len(ours) == 1
    assert ours[0]["filename"].endswith("traces_nanobind.cpp")
    text = (HERE / "traceback_extension" / "traces_nanobind.cpp").read_text().splitlines()
    assert "inner()" in "".join(text[ours[0]["line"] - 2 : ours[0]["line"]])


def test_a_traceback_returns_from_cpp_unchanged(extensions):
    """S3: Python to C++ to Python, through either binding, and kept in C++ in between."""
    nanobind, pybind11 = extensions
    for native in (False, True):
        tb = CapturedTraceback.extract(cpp=native)
        before = tb.symbolize()
        for same in (nanobind.same(tb), pybind11.same(tb), pybind11.same(nanobind.same(tb))):
            assert type(same) is CapturedTraceback
            assert nanobind.addresses(same) == nanobind.addresses(tb)
            assert same.symbolize() == before
        nanobind.keep(tb)
        del tb, same
        gc.collect()
        assert nanobind.kept().symbolize() == before
        assert nanobind.is_kept(nanobind.kept())
        assert not nanobind.is_kept(CapturedTraceback.extract())
        assert nanobind.names(nanobind.kept()) == [frame["name"] for frame in before]
    assert nanobind.empty().format() == []
    with pytest.raises(TypeError):
        nanobind.same(7)
    with pytest.raises(TypeError):
        pybind11.same(None)


def fresh_capture():
    scope = {"marey": marey}
    exec("def fresh():\n    return marey.CapturedTraceback.extract()", scope)
    return scope["fresh"](), weakref.ref(scope["fresh"].__code__)


def test_a_traceback_freed_without_the_gil_releases_its_code_at_the_next_capture(cpp):
    """S7, S8, S10"""
    tb, code = fresh_capture()
    cpp.keep(tb)
    del tb
    gc.collect()
    assert code() is not None
    cpp.drop_without_gil()
    assert code() is not None
    CapturedTraceback.extract()
    assert code() is None


def test_the_collector_ignores_code_shared_with_cpp(cpp):
    """S9"""
    tb, code = fresh_capture()
    cpp.keep(tb)
    assert code() not in gc.get_referents(tb)
    del tb
    gc.collect()
    assert cpp.kept().summary()[-1].name == "fresh"
    cpp.keep(CapturedTraceback.extract())


def test_cpp_captures_with_and_without_the_gil_and_on_threads_unknown_to_python(cpp):
    """S4"""
    me = "test_cpp_captures_with_and_without_the_gil_and_on_threads_unknown_to_python"
    assert cpp.gather(False).summary()[-1].name == me
    assert cpp.gather_released(False).summary()[-1].name == me
    released = cpp.gather_released(True).symbolize()
    assert marks(released, "gather_here", me) == ["gather_here", me]
    assert released[0]["name"].startswith("(anonymous namespace)::gather_here(")
    python, native = cpp.gather_elsewhere()
    assert python == 0 and native > 0

    from_thread = []
    thread = threading.Thread(target=lambda: from_thread.append(cpp.gather_released(False)))
    thread.start()
    thread.join()
    assert from_thread[0].summary()[-1].name == "<lambda>"


def test_locations_name_frames_in_another_process(cpp, run_python):
    """S14: a build id and an offset give the same result there as the address here."""
    tb = cpp.call_back(lambda: CapturedTraceback.extract(cpp=True))
    addresses, locations = cpp.addresses(tb), cpp.locations(tb)
    assert len(addresses) == len(locations) > 3
    assert all(build_id for path, build_id, _ in locations if "libc.so" in path)
    here = cpp.symbolize_addresses(addresses)
    load = f"import sys; sys.path.insert(0, {str(Path(cpp.__file__).parent)!r})\nimport traces_nanobind as cpp\n"
    there = run_python(f"{load}print(cpp.symbolize_locations({locations!r}))")
    assert eval(there) == here
    path, _, offset = locations[0]
    lost = cpp.symbolize_locations([("/gone/lib.so", "0123abcd", 0x40), (path, "0123abcd", offset)])
    assert [frames[0]["name"] for frames in lost] == ["??", "??"]  # another build would give wrong names
    assert lost[0][0]["filename"] == "/gone/lib.so+0x40"


def test_any_number_is_accepted_as_an_address(cpp):
    """upstream: test_fuzz_symbolize"""
    import random

    source = random.Random(6)
    near = cpp.addresses(CapturedTraceback.extract(cpp=True))
    addresses = [source.randrange(1 << bits) for bits in range(1, 65) for _ in range(20)]
    addresses += [max(address + source.randrange(-100_000, 100_000), 0) for address in near for _ in range(50)]
    frames = cpp.symbolize_addresses(addresses)
    assert len(frames) == len(addresses) and all(frames)
    assert all(frame["name"] and frame["filename"] for each in frames for frame in each)


def test_unwinding_is_counted(cpp):
    """S18"""

    def capture():
        return CapturedTraceback.extract(cpp=True)

    for _ in range(3):
        known, looked_up = cpp.unwind_counts()
        capture()
    assert cpp.unwind_counts()[0] > known and cpp.unwind_counts()[1] == looked_up
