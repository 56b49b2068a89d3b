"""The types of the package: the stubs that tools/extension_stub.py writes are right, and programs see them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import marey

pytest.importorskip("mypy")
pytestmark = pytest.mark.skipif("MAREY_TEST_SANITIZER" in os.environ, reason="mypy runs none of our code")

# Differences of every nanobind class and function from one written in Python.
OF_NANOBIND = re.compile(
    r"metaclass differs$|is a disjoint base at runtime|is not a function$|"
    r"is inconsistent, stub does not have (\*args|\*\*kwargs) parameter|stub is a staticmethod but runtime is not$|"
    r"(itt|nvtx|torch) is not a type$"  # modules, which the stub shows as classes
)


def run(folder, *words):
    environment = {**os.environ, "MYPY_CACHE_DIR": str(folder / "cache")}
    if os.environ.get("PYTHONPATH"):  # the package in a build folder
        environment["MYPYPATH"] = str(Path(marey.__path__[0]).parent)
    return subprocess.run([sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True)


def test_the_stub_and_the_extension_agree(tmp_path):
    """mypy's stubtest finds types in tools/extension_stub.pat for things that have changed."""
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_errors = True\nignore_missing_imports = True\n")
    done = run(tmp_path, "mypy.stubtest", "--mypy-config-file", "mypy.ini", "--concise", "marey._marey")
    assert done.stderr == "" and done.stdout != "", done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if not OF_NANOBIND.search(line)] == []


def test_a_program_with_types_is_checked_against_the_stubs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import marey\n"
        "def work(n: int) -> str:\n"
        "    with marey.record_function('work', args=str(n)):\n"
        "        return str(n)\n"
        "marked = marey.record_function('marked')(work)\n"
        "reveal_type(marked(3))\n"
        "marey.begin(3)\n"
    )
    done = run(tmp_path, "mypy", "--strict", str(program))
    assert 'Revealed type is "builtins.str"' in done.stdout or 'Revealed type is "str"' in done.stdout, done.stdout
    assert "incompatible type" in done.stdout, done.stdout
    assert "Found 1 error" in done.stdout, done.stdout
