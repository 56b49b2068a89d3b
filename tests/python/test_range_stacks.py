"""Ranges with stacks: in events, averages and files, and symbolized by ``marey symbolize`` elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import marey
from marey import _marey  # private: has_native_lines: what this build can do


def by_name(trace, name):
    return [event for event in trace.events() if event.name == name]


def outer(inner):
    inner()  # line below: outer + 1
    return None


def line_of(function, plus):
    return function.__code__.co_firstlineno + plus


@pytest.mark.parametrize("choice", ["cpp", "both"])
def test_native_stacks_begin_with_frames_of_the_program(choice):
    fast = marey.record_function_fast("fast", keyword_values={"n": 1}, stack=choice)

    @marey.record_function("decorated", stack=choice)
    def decorated():
        pass

    with marey.profile() as prof:
        with marey.record_function("plain", stack=choice):
            pass
        with fast:
            pass
        decorated()
    for name in ("plain", "fast", "decorated"):
        (event,) = by_name(prof.trace, name)
        assert event.stack and "_marey" not in event.stack[0] and "libmarey" not in event.stack[0], name


def test_a_range_with_a_stack_has_the_lines_that_ran():
    """L9"""

    def inner():
        with marey.record_function("plain"):
            pass
        with marey.record_function("carried", stack=True):
            pass

    with marey.profile() as prof:
        outer(inner)
    plain, carried = by_name(prof.trace, "plain")[0], by_name(prof.trace, "carried")[0]
    assert plain.stack == []
    file = Path(__file__).name
    assert carried.stack[0].endswith(
        f"{file}({line_of(inner, 3)}): test_a_range_with_a_stack_has_the_lines_that_ran.<locals>.inner"
    )
    assert carried.stack[1].endswith(f"{file}({line_of(outer, 1)}): outer")
    assert carried.stack[2].endswith(": test_a_range_with_a_stack_has_the_lines_that_ran")


def test_decorators_generators_and_fast_ranges_have_stacks_without_marey_frames():
    @marey.record_function("decorated", stack=True)
    def decorated():
        pass

    @marey.record_function("generated", stack="python")
    def generated():
        yield 1

    fast = marey.record_function_fast("fast", keyword_values={"n": 1}, stack=True)
    with marey.profile() as prof:
        decorated()
        list(generated())
        with fast:
            pass
        with marey.record_function("texted", "some text", stack=True):
            pass
    me = "test_decorators_generators_and_fast_ranges_have_stacks_without_marey_frames"
    for name in ("decorated", "generated", "fast", "texted"):
        events = by_name(prof.trace, name)
        assert events and all(event.stack[0].endswith(f": {me}") for event in events), name
        assert not any("/marey/" in frame for event in events for frame in event.stack)
    assert by_name(prof.trace, "fast")[0].kwinputs == {"n": 1}


def test_the_stack_argument_is_checked():
    assert marey.record_function("a").stack is False
    assert marey.record_function("a", stack=True).stack == "python"
    assert marey.record_function("a", stack="cpp").stack == "cpp"
    assert marey.record_function("a", stack="both").stack == "both"
    for make in (marey.record_function, marey.record_function_fast):
        with pytest.raises(ValueError, match="stack must be True"):
            make("a", stack="native")
        with pytest.raises(TypeError, match="stack must be"):
            make("a", stack=3)


def test_no_stack_is_captured_while_nothing_records():
    with marey.record_function("off", stack="both"):
        pass
    with marey.profile() as prof:
        pass
    assert by_name(prof.trace, "off") == []


def test_stacks_group_averages_and_appear_in_chrome_files(tmp_path):
    """upstream: group_by_stack_n, and `Call stack` with ";" after each frame."""

    def step():
        with marey.record_function("work", stack=True):
            pass

    def one():
        step()

    def two():
        step()

    with marey.profile() as prof:
        one()
        two()
        two()
    grouped = prof.key_averages(group_by_stack_n=2)
    counts = sorted((row.count, row.stack[1].rsplit(".", 1)[-1]) for row in grouped if row.key == "work")
    assert counts == [(1, "one"), (2, "two")]
    assert all(len(row.stack) == 2 for row in grouped if row.key == "work")
    file = tmp_path / "trace.json"
    prof.export_chrome_trace(str(file))
    texts = [
        event["args"]["Call stack"]
        for event in json.loads(file.read_text())["traceEvents"]
        if event.get("name") == "work"
    ]
    assert len(texts) == 3
    for text, event in zip(sorted(texts), sorted(by_name(prof.trace, "work"), key=lambda e: e.stack)):
        assert text == "".join(frame + ";" for frame in event.stack)
    assert sorted(event.stack for event in by_name(marey.load(file), "work")) == sorted(
        event.stack for event in by_name(prof.trace, "work")
    )


def test_with_stack_an_event_has_its_enclosing_calls_innermost_first():
    """upstream: FunctionEvent.stack and group_by_stack_n with with_stack=True."""

    def inner():
        with marey.record_function("leaf"):
            pass

    def first():
        inner()

    def second():
        inner()

    with marey.profile(with_stack=True) as prof:
        first()
        second()
    stacks = [[frame.rsplit(".", 1)[-1] for frame in event.stack[:2]] for event in by_name(prof.trace, "leaf")]
    assert sorted(stacks) == [["inner", "first"], ["inner", "second"]]
    rows = [row for row in prof.key_averages(group_by_stack_n=2) if row.key == "leaf"]
    assert [row.count for row in rows] == [1, 1]
    assert [row.count for row in prof.key_averages(group_by_stack_n=1) if row.key == "leaf"] == [2]


def test_stacks_survive_files_and_names_are_found_later(tmp_path, run_python):
    file = tmp_path / "app.marey"
    run_python(
        f"""
import marey
session = marey.Session()
session.start(output={str(file)!r})
def work():
    with marey.record_function("work", stack="both"):
        pass
work()
session.stop()
"""
    )
    trace = marey.load(file)
    (event,) = by_name(trace, "work")
    python = [frame for frame in event.stack if frame.endswith((": work", ": <module>"))]
    assert [frame.rsplit(" ", 1)[-1] for frame in python] == ["work", "<module>"]
    assert any("+0x" in frame for frame in event.stack)
    trace.save(tmp_path / "saved.marey")
    saved = marey.load(tmp_path / "saved.marey")
    assert by_name(saved, "work")[0].stack == event.stack
    named = by_name(saved.symbolize(), "work")[0].stack
    assert any("PyEval_EvalCode" in frame for frame in named)  # exported, so that stripped interpreters have its name
    assert [frame for frame in named if frame.endswith((": work", ": <module>"))] == python


PROGRAM = """
#include <marey/all.h>

__attribute__((noinline)) void innermost_work() {
    MAREY_RANGE("work", "stack", marey::CallStack());
    asm volatile("");
}
__attribute__((noinline)) void surrounding_work() {
    innermost_work();
    asm volatile("");
}
int main(int, char** argv) {
    marey::SessionOptions options;
    options.output = argv[1];
    marey::Session session(options);
    surrounding_work();
    session.stop();
}
"""


LISTS = """
cmake_minimum_required(VERSION 3.20)
project(program CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(marey REQUIRED)
add_executable(program program.cpp)
target_compile_options(program PRIVATE -g -O1)
target_link_options(program PRIVATE -Wl,--build-id)
target_link_libraries(program PRIVATE marey::marey)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A program, its capture and its command; built as a user would build it."""
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("needs cmake and a compiler")
    if os.environ.get("MAREY_TEST_SANITIZER"):
        pytest.skip("the sanitizer's library is not in the program")
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.cpp").write_text(PROGRAM)
    (folder / "CMakeLists.txt").write_text(LISTS)
    cmake_dir = subprocess.run(
        [sys.executable, "-m", "marey", "--cmake-dir"], capture_output=True, text=True, check=True
    )
    subprocess.run(
        ["cmake", "-S", folder, "-B", folder, f"-Dmarey_DIR={cmake_dir.stdout.strip()}"],
        check=True,
        capture_output=True,
    )
    subprocess.run(["cmake", "--build", folder], check=True, capture_output=True)
    subprocess.run([folder / "program", folder / "app.marey"], check=True)
    return folder


def symbolize(*words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "marey", "symbolize", *map(str, words)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_symbolize_names_frames_of_a_program_that_was_moved(recorded, tmp_path):
    """S14: by name, by path and by build id below --debug-dir; another build is rejected, missing files are named."""
    capture, program = recorded / "app.marey", recorded / "program"
    here = symbolize(capture)
    assert "innermost_work()" in here and "surrounding_work()" in here
    if _marey.has_native_lines():
        assert "program.cpp(5): innermost_work()" in here

    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.move(program, moved / "program")
    try:
        gone = symbolize(capture)
        assert "innermost_work" not in gone
        assert f"{program} (build id " in gone and "missing: file not found" in gone
        build_id = gone.split(f"{program} (build id ", 1)[1].split(")", 1)[0]

        found = symbolize(capture, "--debug-dir", moved)
        assert "innermost_work()" in found and f"from {moved / 'program'}" in found

        by_id = tmp_path / "ids"
        place = by_id / ".build-id" / build_id[:2]
        place.mkdir(parents=True)
        shutil.copy(moved / "program", place / f"{build_id[2:]}.debug")
        assert "innermost_work()" in symbolize(capture, "--debug-dir", by_id)

        other = tmp_path / "other"
        other.mkdir()
        bytes_of = (moved / "program").read_bytes()
        changed = bytes_of.replace(bytes.fromhex(build_id), bytes.fromhex(build_id)[::-1])
        assert changed != bytes_of
        (other / "program").write_bytes(changed)
        refused = symbolize(capture, "--debug-dir", other)
        assert "innermost_work" not in refused and f", not {build_id}" in refused

        assert "innermost_work()" in symbolize(capture, "--debug-dir", other, "--debug-dir", moved)
        symbolize(capture, "--debug-dir", moved, "-o", tmp_path / "named.marey")
        (event,) = by_name(marey.load(tmp_path / "named.marey"), "work")
        functions = [frame.rsplit(": ", 1)[-1] for frame in event.stack]
        at = functions.index("innermost_work()")
        assert functions[at + 1 : at + 3] == ["surrounding_work()", "main"]
        assert "innermost_work()" in "".join(by_name(marey.load(capture).symbolize([moved]), "work")[0].stack)
    finally:
        shutil.move(moved / "program", program)


def test_symbolize_reports_errors(recorded, tmp_path):
    capture = recorded / "app.marey"
    assert "is not a folder" in symbolize(capture, "--debug-dir", tmp_path / "none", code=2)
    assert "is the input file" in symbolize(capture, "-o", capture, code=2)
    assert "No such file" in symbolize(tmp_path / "none.marey", code=2)
    with marey.profile() as prof, marey.record_function("plain"):
        pass
    prof.trace.save(tmp_path / "plain.marey")
    assert symbolize(tmp_path / "plain.marey").startswith("no native frames")
