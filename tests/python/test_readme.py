"""The commands and the Python example in README.md work as shown; `make test-readme` runs all in a fresh clone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from readme_commands import blocks, commands, fixed_words

README = (ROOT / "README.md").read_text()
MAREY = Path(sys.executable).with_name("marey")


def section(name):
    return README.split(f"\n## {name}\n")[1].split("\n## ")[0]


def shape(table):
    """Lines without parts that differ between runs: numbers, their units, widths; body rows in any order."""
    lines = [re.sub(r"-{3,}", "---", re.sub(r"\d+\.\d+(us|ms|s|%)", "N", line)).split() for line in table.splitlines()]
    return lines[:3] + sorted(lines[3:])


def test_the_example_prints_what_the_readme_shows(run_python):
    ((_, program),) = [block for block in blocks(section("Python")) if block[0] == "python"]
    shown = blocks(section("Python"))[-1][1]
    assert "# of Calls" in shown
    printed = run_python(program)
    assert shape(printed.strip("\n")) == shape(shown.strip("\n"))


@pytest.mark.skipif(not MAREY.exists(), reason="the command is installed with the package only")
def test_the_commands_of_the_quick_start_work_as_typed(tmp_path):
    shutil.copytree(ROOT / "examples" / "python", tmp_path / "examples" / "python")
    typed = commands(section("Quick start"))
    assert len(typed) >= 6
    for command, shown in typed:
        words = command.split()
        assert words[0] == "marey", command
        done = subprocess.run([MAREY, *words[1:]], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)
        printed = (done.stdout + done.stderr).split()
        assert [word for word in fixed_words(shown) if word not in printed] == [], command
    assert (tmp_path / "spell.pftrace").stat().st_size > 0 and (tmp_path / "spell.folded").stat().st_size > 0


def test_the_readme_is_short():
    assert len(README.splitlines()) < 200
