"""A user's own C++ extension, built against the installed package, records into the same log."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kymo

HERE = Path(__file__).resolve().parent


def output_of(*words, env=None):
    done = subprocess.run([*map(str, words)], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def extensions(tmp_path_factory):
    """The folder with both extensions, built as a user would: knowing nothing but three CMake folders."""
    pytest.importorskip("nanobind")
    pytest.importorskip("pybind11")
    folder = tmp_path_factory.mktemp("extensions")
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    sanitizer = os.environ.get("KYMO_TEST_SANITIZER")
    output_of(
        "cmake",
        *("-S", HERE / "extensions", "-B", folder, "-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={sys.executable}"),
        f"-Dkymo_DIR={output_of(sys.executable, '-m', 'kymo', '--cmake-dir')}",
        f"-Dnanobind_DIR={output_of(sys.executable, '-m', 'nanobind', '--cmake_dir')}",
        f"-Dpybind11_DIR={output_of(sys.executable, '-m', 'pybind11', '--cmakedir')}",
        f"-DCMAKE_CXX_FLAGS_DEBUG={f'-O0 -fsanitize={sanitizer}' if sanitizer else '-O0'}",
        env=plain,
    )
    output_of("cmake", "--build", folder, "-j2", env=plain)
    return folder


def test_extensions_of_nanobind_and_pybind11_record_into_the_session_of_python(extensions, monkeypatch):
    monkeypatch.syspath_prepend(str(extensions))
    import with_nanobind
    import with_pybind11

    def innermost():
        with kymo.record_function("python innermost"):
            pass

    session = kymo.Session()
    session.start()
    with kymo.record_function("python outermost"):
        with_nanobind.work(lambda: with_pybind11.work(innermost))
    trace = session.stop()
    names = [event.name for event in trace.events()]
    # One track, each inside the one before: one recorder saw them all.
    assert names == ["python outermost", "nanobind work", "pybind11 work", "python innermost"]


def test_functions_of_extensions_are_named_by_module_and_class(extensions, monkeypatch):
    monkeypatch.syspath_prepend(str(extensions))
    import with_nanobind
    import with_pybind11

    def nothing():
        pass

    with kymo.profile(with_stack=True) as prof:
        for module in (with_nanobind, with_pybind11):
            module.work(nothing)
            module.Tally().add(1)
        with_pybind11.Tally().set(2)
    names = {event.name for event in prof.events()}
    assert "with_pybind11.work" in names
    if sys.version_info >= (3, 12):  # the profile hook of 3.11 sees plain functions of C alone
        assert {"with_pybind11.Tally.add", "with_pybind11.Tally.set"} <= names
        assert {"with_nanobind.work", "with_nanobind.Tally.add"} <= names


def test_a_process_with_such_extensions_has_one_libkymo(extensions):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import with_pybind11, with_nanobind, kymo\n"  # ours comes last: theirs have to find the same file
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if 'libkymo' in line}, sep='\\n')"
    )
    paths = output_of(sys.executable, "-c", program, extensions).splitlines()
    assert len(paths) == 1, paths


def test_an_extension_records_under_kymo_run_though_its_program_never_imports_the_package(extensions, tmp_path):
    (tmp_path / "x.py").write_text(
        f"import sys; sys.path.insert(0, {str(extensions)!r})\nimport with_nanobind\nwith_nanobind.work(lambda: 0)\n"
    )
    output_of(sys.executable, "-m", "kymo", "run", "-o", tmp_path / "x.kymo", tmp_path / "x.py")
    trace = kymo.load(tmp_path / "x.kymo")
    assert [event.name for event in trace.events()].count("nanobind work") == 1
