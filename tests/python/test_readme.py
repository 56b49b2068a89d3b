"""The Python example of README.md does what the page says."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def blocks():
    """(language, text) of the fenced blocks of the section on Python."""
    section = README.read_text().split("## Use it from Python")[1].split("\n## ")[0]
    return re.findall(r"^```(\w*)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def shape(table):
    """Lines without what differs from run to run: numbers, their units, widths; rows of the body in any order."""
    lines = [re.sub(r"-{3,}", "---", re.sub(r"\d+\.\d+(us|ms|s|%)", "N", line)).split() for line in table.splitlines()]
    return lines[:3] + sorted(lines[3:])


def test_the_example_prints_what_the_readme_shows(run_python):
    (program,) = [text for language, text in blocks() if language == "python"]
    shown = blocks()[-1][1]
    assert "# of Calls" in shown
    printed = run_python(program)
    assert shape(printed.strip("\n")) == shape(shown.strip("\n"))
