"""Pythons that Marey was not built for: they run as without it, and say why nothing is recorded."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import environment, plain, recorded, write

import marey


def built_for_another_python(folder):
    """Return the folder of a package whose extension was built for a Python that does not exist."""
    package = folder / "marey"
    package.mkdir()
    for path in Path(marey.__file__).parent.iterdir():
        if not path.name.startswith("_marey."):
            (package / path.name).symlink_to(path)
    (package / "_marey.cpython-399-x86_64-linux-gnu.so").touch()
    return folder


def test_an_import_under_another_python_names_both(tmp_path):
    folder = built_for_another_python(tmp_path)
    done = plain(["-c", "import marey"], tmp_path, PYTHONPATH=str(folder))
    own = f"CPython {sys.version_info[0]}.{sys.version_info[1]}"
    assert f"ImportError: this Marey is for CPython 3.99; {sys.executable} is {own}" in done[1]


def test_a_run_under_another_python_names_both(tmp_path):
    folder = built_for_another_python(tmp_path)
    write(tmp_path, "print('ran')")
    variables = {
        "PYTHONPATH": str(folder / "marey/launch/_start"),
        "MAREY": f"out={tmp_path}/x.marey,calls=on,tree=0123456789abcdef:{os.getpid()}",
    }
    python = sys._base_executable  # outside an environment in which Marey is installed
    done = subprocess.run(
        [python, "program.py"], cwd=tmp_path, env=environment(**variables), capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    assert done.stderr.startswith("marey: this Marey is for CPython 3.99; ") and done.stderr.count("\n") == 1
    # Its children are not recorded either, and do not say it again.
    child = [python, "-c", "import subprocess, sys; subprocess.run([sys.executable, 'program.py'])"]
    done = subprocess.run(child, cwd=tmp_path, env=environment(**variables), capture_output=True, text=True)
    assert (done.stdout, done.stderr.count("\n")) == ("ran\n", 1)


def installed(version):
    """Return an interpreter of this version, or None. Launchers of pyenv exist for versions that they cannot start."""
    names = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")]
    for name in map(str, filter(None, names)):
        if subprocess.run([name, "-c", ""], capture_output=True).returncode == 0:
            return name
    return None


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.8", "3.12"])
def test_other_pythons_run_as_without_marey(tmp_path, version):
    python = installed(version)
    if python is None or sys.version_info[:2] == tuple(map(int, version.split("."))):
        pytest.skip(f"Python {version} is not installed")
    write(tmp_path, "import sys; sys.stdout.write('ran\\n')")
    out, errors, code = recorded(["--", python, "program.py"], tmp_path, run_options=["-o", "x.marey"])
    assert (out, code) == ("ran\n", 0)
    assert f"; {python} is " in errors and "sitecustomize" not in errors and "nothing was recorded" in errors
    write(tmp_path, f"import subprocess; subprocess.run([{python!r}, 'program.py'])", "parent.py")
    out, errors, code = recorded(["parent.py"], tmp_path)
    assert (out, errors, code) == ("ran\n", "", 0)
