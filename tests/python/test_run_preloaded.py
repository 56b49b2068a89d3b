"""``marey run`` where libmarey is loaded before Python: preloaded, or linked to a program that embeds Python."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
from running import environment, functions, write

import marey

PROGRAM = """
    import marey

    def f():
        return sum(range(10))

    for _ in range(5):
        f()
    with marey.record_function("marked"):
        pass
"""
EMBEDDING = r"""
    #include <Python.h>

    int main(void) {
        Py_Initialize();
        const int failed = PyRun_SimpleString("def f():\n    return sum(range(10))\nfor _ in range(5): f()\n");
        return Py_FinalizeEx() != 0 || failed;
    }
"""


def library():
    """The libmarey that this process has loaded."""
    maps = pathlib.Path("/proc/self/maps").read_text()
    return re.search(r"/\S*/libmarey\.so\S*", maps)[0]


def run(folder, *words, options=("-q", "-o", "x.marey"), **changes):
    done = subprocess.run(
        [sys.executable, "-m", "marey", "run", *options, "--", *map(str, words)],
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "x.marey"


def preloaded(folder, *words, **settings):
    preload = ":".join(filter(None, [os.environ.get("LD_PRELOAD"), library()]))
    return run(folder, "env", f"LD_PRELOAD={preload}", sys.executable, *words, **settings)


def test_calls_are_counted_once(tmp_path):
    path = preloaded(tmp_path, write(tmp_path, PROGRAM))
    counts = functions(path)
    assert counts["f"] == 5 and counts["marked"] == 1
    with pytest.raises(marey.Error):
        marey.load(path, session=2)  # there is only one
    # Calls from before the program begins, of the interpreter and of Marey, are left out as in any run.
    without = functions(run(tmp_path, sys.executable, "program.py", options=("-q", "--force", "-o", "x.marey")))
    assert counts == without


def test_forked_and_started_processes_are_counted_once(tmp_path):
    program = """
        import os, subprocess, sys

        def f():
            pass

        f()
        pid = os.fork()
        if pid == 0:
            f()
            sys.exit()
        os.waitpid(pid, 0)
        subprocess.run([sys.executable, "-c", "def f(): pass\\nf(); f()"], check=True)
    """
    path = preloaded(tmp_path, write(tmp_path, program))
    assert functions(path)["f"] == 4


def test_c_calls_are_recorded_as_requested(tmp_path):
    write(tmp_path, PROGRAM)
    assert (
        functions(preloaded(tmp_path, "program.py", options=("-q", "--c-calls", "-o", "x.marey")))["builtins.sum"] == 5
    )
    options = ("-q", "--force", "--no-c-calls", "-o", "x.marey")
    assert functions(preloaded(tmp_path, "program.py", options=options))["builtins.sum"] == 0


def test_a_program_that_embeds_python_is_recorded_once(tmp_path):
    config = shutil.which(f"python{sysconfig.get_python_version()}-config", path=sysconfig.get_config_var("BINDIR"))
    compiler = shutil.which("cc")
    if config is None or compiler is None or not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("there is no C compiler, or no shared libpython")
    flags = subprocess.run([config, "--cflags", "--ldflags", "--embed"], capture_output=True, text=True, check=True)
    write(tmp_path, EMBEDDING, "embedding.c")
    folders = (pathlib.Path(library()).parent, sysconfig.get_config_var("LIBDIR"))
    subprocess.run(
        [compiler, "embedding.c", "-o", "embedding", *flags.stdout.split(), "-Wl,--no-as-needed", library()]
        + [f"-Wl,-rpath,{folder}" for folder in folders],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        check=True,
        timeout=120,
    )
    path = run(tmp_path, tmp_path / "embedding", PYTHONHOME=sys.base_prefix)
    counts = functions(path)
    assert counts["f"] == 5
    assert not any(name.startswith("_begin") or name == "record" for name in counts)  # those of the start file
    with pytest.raises(marey.Error):
        marey.load(path, session=2)  # there is only one
