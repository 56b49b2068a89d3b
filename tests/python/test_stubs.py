"""The type stubs match the package: names, members, parameters and defaults."""

import ast
import importlib.util
import inspect
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
    r"is inconsistent, stub does not have (\*args|\*\*kwargs) parameter"
)


def run(folder, *words):
    environment = {**os.environ, "MYPY_CACHE_DIR": str(folder / "cache")}
    if os.environ.get("PYTHONPATH"):  # the package in a build folder
        environment["MYPYPATH"] = str(Path(marey.__path__[0]).parent)
    return subprocess.run([sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True)


def public_names():
    """Names that users may see: those of the public modules, and the classes of their results."""
    names = {"Results", "ProfilerStats", "_Emitter", "_ITraceObserver"}
    for module in (marey, marey.profiler, marey.nvtx, marey.itt):
        names.update(module.__all__)
    return names


def concerns_users(line):
    """Return whether a difference is about something public. Private parts of modules need no types."""
    if line.startswith("marey.torch") and importlib.util.find_spec("torch") is None:
        return False  # it cannot be imported here
    match = re.match(r"marey\.(_\w+)\.(\w+)", line)
    return match is None or match.group(2) in public_names()


def test_stubs_and_package_agree(tmp_path):
    """mypy's stubtest imports every module, and compares it with its stub."""
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_errors = True\nignore_missing_imports = True\n")
    done = run(tmp_path, "mypy.stubtest", "--mypy-config-file", "mypy.ini", "--concise", "marey")
    assert done.stderr == "" and done.stdout != "", done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("error")] == []
    differences = [line for line in lines if line.startswith("marey") and not OF_NANOBIND.search(line)]
    assert [line for line in differences if concerns_users(line)] == []


def test_docstrings_of_the_extension_are_in_its_stub():
    """The documentation site and editors read them there."""
    different = []

    def compare(body, home, prefix=""):
        for node in body:
            name = getattr(node, "name", "_")
            if name.startswith("_") or (not prefix and name not in marey.__all__):
                continue
            thing = getattr(home, name)
            text = inspect.cleandoc(thing.__doc__ or "")
            text = re.sub(rf"^({name})?\(.*\) -> .*\n*", "", text)  # nanobind begins with the signature
            if text and ast.get_docstring(node) != text:
                different.append((prefix + name, text, ast.get_docstring(node)))
            if isinstance(node, ast.ClassDef):
                compare(node.body, thing, f"{name}.")

    compare(ast.parse((Path(marey.__path__[0]) / "_marey.pyi").read_text()).body, marey._marey)
    assert different == []


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
