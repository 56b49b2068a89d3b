"""The installed package: the effects of importing it, its command, and its files for C++ projects."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import marey

FOLDER = Path(marey.__path__[0])
SCRIPT = Path(sys.executable).parent / "marey"
installed = pytest.mark.skipif(bool(os.environ.get("PYTHONPATH")), reason="a build folder's package is not installed")


def command(*arguments, cwd=None, env=None, check=True):
    done = subprocess.run(
        [sys.executable, "-m", "marey", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


# ---- importing


@pytest.mark.skipif(not hasattr(sys.flags, "gil") or sys.flags.gil == 1, reason="needs a free-threaded Python")
def test_a_free_threaded_python_gets_its_gil_or_one_line():
    text = "import sys, marey\nprint(sys._is_gil_enabled())"
    kept = subprocess.run([sys.executable, "-X", "gil=1", "-c", text], capture_output=True, text=True)
    assert (kept.stdout, kept.stderr) == ("True\n", "")
    forbidden = subprocess.run([sys.executable, "-X", "gil=0", "-c", text], capture_output=True, text=True)
    assert forbidden.stderr.splitlines()[-1] == "ImportError: Marey needs the GIL: remove PYTHON_GIL=0 or -X gil=0"


# Modules that `import marey` may load in addition to those of a bare interpreter. Each takes well under a millisecond;
# slower ones (json, uuid, asyncio, concurrent.futures, inspect, typing, dataclasses) are imported where they are used.
CHEAP = set(
    "__future__ _collections _contextvars _functools _operator _thread _warnings _weakref _weakrefset atexit "
    "collections collections.abc contextvars copyreg enum errno functools itertools keyword math operator reprlib "
    "threading time types warnings weakref".split()
)


def test_importing_loads_only_cheap_modules(run_python):
    text = "import sys\nbefore = set(sys.modules)\nimport marey\nprint(*sorted(set(sys.modules) - before), sep='\\n')"
    loaded = {name for name in run_python(text).split() if not name.startswith("marey")}
    assert loaded <= CHEAP, sorted(loaded - CHEAP)


def test_importing_starts_no_thread_and_leaves_no_file_or_variable(run_python, tmp_path):
    text = """
import os, signal, sys, threading
def state():
    return (os.listdir("/proc/self/task"), sorted(os.listdir("/proc/self/fd")), dict(os.environ), os.listdir("."),
            [signal.getsignal(n) for n in range(1, 32)], sys.getprofile(), threading.active_count(), sys.excepthook,
            list(sys.meta_path), list(sys.path_hooks), threading.Thread.start)
state()
before = state()
import marey
assert state() == before, [(a, b) for a, b in zip(before, state()) if a != b]
assert not marey.is_recording()
"""
    run_python(text)
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_importing_obeys_the_variable_that_libmarey_documents(run_python, tmp_path):
    run_python("import marey\nwith marey.record_function('x'): pass", env={"MAREY": f"out={tmp_path}/a.marey"})
    assert marey.load(tmp_path / "a.marey").events()[0].name == "x"


def test_every_public_name_exists_and_the_package_is_marked_as_typed():
    assert [name for name in marey.__all__ if not hasattr(marey, name)] == []
    assert (FOLDER / "py.typed").exists()
    assert (FOLDER / "__init__.pyi").exists() or "MAREY_TEST_SANITIZER" in os.environ


def test_a_name_of_pytorchs_profiler_is_found_where_the_error_says():
    with pytest.raises(AttributeError, match=r"KinetoStepTracker.*marey\.profiler"):
        marey.KinetoStepTracker
    assert marey.profiler.KinetoStepTracker
    assert "KinetoStepTracker" not in dir(marey)
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_name'$"):
        marey.no_such_name


def test_the_package_never_loads_its_part_for_pytorch(run_python):
    """Importing all else and recording leaves marey.torch alone, also where PyTorch is installed."""
    text = "import sys, marey, marey.profiler, marey.context.processes, marey.launch.program, marey.launch.doctor\n"
    text += "for name in marey.__all__: getattr(marey, name)\n"
    text += "with marey.profile(threads='tasks') as prof: pass\n"
    text += "prof.key_averages().table(), prof.tree()\n"
    text += "print([name for name in sys.modules if name.partition('.')[0] == 'torch' or name == 'marey.torch'])"
    assert run_python(text) == "[]\n"


# ---- the command


def test_the_command_and_the_module_are_the_same():
    assert command("--version").stdout == "marey 0.2.0\n"


@installed
def test_the_script_is_the_command_too_and_belongs_to_this_interpreter():
    done = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "marey 0.2.0\n")
    assert SCRIPT.read_text().startswith(f"#!{sys.executable}\n")


@installed
def test_the_script_does_not_record_itself(tmp_path):
    subprocess.run([SCRIPT, "--version"], env={**os.environ, "MAREY": f"out={tmp_path}/own.marey"}, check=True)
    assert list(tmp_path.iterdir()) == []


def test_run_starts_the_python_that_the_command_belongs_to(tmp_path):
    program = tmp_path / "work.py"
    program.write_text(
        "#!/bin/false\nimport sys, marey\nwith marey.record_function('work'): print(sys.executable, *sys.argv[1:])\n"
        "sys.exit(7)\n"
    )
    done = command("run", "-o", "out.marey", "--", program, "a", "b c", cwd=tmp_path, check=False)
    assert done.returncode == 7
    assert done.stdout == f"{sys.executable} a b c\n"
    assert "work" in [event.name for event in marey.load(tmp_path / "out.marey").events()]


def test_run_without_calls_records_the_ranges_of_a_script(tmp_path):
    (tmp_path / "x.py").write_text("import marey\nwith marey.record_function('here'): print('hello')")
    done = command("run", "--no-calls", "-o", "x.marey", "x.py", cwd=tmp_path)
    assert done.stdout == "hello\n"
    assert [event.name for event in marey.load(tmp_path / "x.marey").events()] == ["here"]


def test_without_the_command_the_package_reports_why(tmp_path):
    from marey.launch.command import main  # private: the start script, in this process

    assert "fmt or CLI11" in main([str(tmp_path)], ["marey", "report"])
    assert "no CMake files" in main([str(tmp_path)], ["marey", "--cmake-dir"])


# ---- files


@installed
def test_the_package_contains_no_build_paths():
    """Libraries look for each other beside themselves: the folder can be moved."""
    libraries = [*FOLDER.glob("_marey*.so"), *(FOLDER / "lib").glob("libmarey*"), FOLDER / "bin" / "marey"]
    names = sorted(path.name for path in libraries if path.name.startswith("libmarey"))
    devices = [name for name in names if name.startswith("libmarey_")]
    assert len(names) - len(devices) == 1, names  # one libmarey, no copies of it
    for path in libraries:
        text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        for line in text.splitlines():
            if "RPATH" in line or "RUNPATH" in line:
                assert ("[$ORIGIN/" in line or "[$ORIGIN]" in line) and ":" not in line.split("[")[1], line


def test_the_cmake_folder_is_that_of_this_package():
    folder = Path(command("--cmake-dir").stdout.strip())
    assert folder.is_relative_to(FOLDER)
    assert (folder / "mareyConfig.cmake").exists()
    assert (folder / "mareyTargets.cmake").exists()


def test_the_version_is_that_of_the_command():
    assert marey.__version__ in command("--version").stdout
