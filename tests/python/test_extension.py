"""A user's own C++ extension, built against the installed package, records into the same log."""

import sys
from pathlib import Path

import pytest
from building import build_extensions, output_of

import marey

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def extensions(tmp_path_factory):
    """The folder with both extensions."""
    folder = tmp_path_factory.mktemp("extensions")
    build_extensions(HERE / "extensions", folder)
    return folder


def test_nanobind_and_pybind11_extensions_record_into_the_python_session(extensions, monkeypatch):
    monkeypatch.syspath_prepend(str(extensions))
    import with_nanobind
    import with_pybind11

    def innermost():
        with marey.record_function("python innermost"):
            pass

    session = marey.Session()
    session.start()
    with marey.record_function("python outermost"):
        with_nanobind.work(lambda: with_pybind11.work(innermost))
    trace = session.stop()
    names = [event.name for event in trace.events()]
    # One track, each inside the one before: one recorder saw them all.
    assert names == ["python outermost", "nanobind work", "pybind11 work", "python innermost"]


def test_extension_functions_are_named_by_module_and_class(extensions, monkeypatch):
    monkeypatch.syspath_prepend(str(extensions))
    import with_nanobind
    import with_pybind11

    def nothing():
        pass

    with marey.profile(with_stack=True) as prof:
        for module in (with_nanobind, with_pybind11):
            module.work(nothing)
            module.Tally().add(1)
        with_pybind11.Tally().set(2)
    names = {event.name for event in prof.events()}
    assert "with_pybind11.work" in names
    if sys.version_info >= (3, 12):  # the profile hook of 3.11 sees plain functions of C alone
        assert {"with_pybind11.Tally.add", "with_pybind11.Tally.set"} <= names
        assert {"with_nanobind.work", "with_nanobind.Tally.add"} <= names


def test_a_process_with_such_extensions_has_one_libmarey(extensions):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import with_pybind11, with_nanobind, marey\n"  # marey comes last: the extensions must find the same file
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if 'libmarey' in line}, sep='\\n')"
    )
    paths = output_of(sys.executable, "-c", program, extensions).splitlines()
    assert len(paths) == 1, paths


def test_an_extension_records_under_marey_run_without_importing_the_package(extensions, tmp_path):
    (tmp_path / "x.py").write_text(
        f"import sys; sys.path.insert(0, {str(extensions)!r})\nimport with_nanobind\nwith_nanobind.work(lambda: 0)\n"
    )
    output_of(sys.executable, "-m", "marey", "run", "-o", tmp_path / "x.marey", tmp_path / "x.py")
    trace = marey.load(tmp_path / "x.marey")
    assert [event.name for event in trace.events()].count("nanobind work") == 1
