#!/usr/bin/env python3
"""readme_commands.py [--quick-start]: runs every command block of README.md, in order.

In a fresh clone of the committed tree. With --quick-start: only those of that section, in the current folder, with the
commands in PATH.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, text) of the fenced blocks in a document, without those that it marks as not run."""
    text = re.sub(r"^<!-- not run: .*? -->\n```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[tuple[str, str]]:
    """(command, output shown) of the console blocks in a document."""
    found: list[tuple[str, str]] = []
    for language, block in blocks(text):
        for line in block.splitlines() if language == "console" else ():
            if line.startswith("$ "):
                found.append((line[2:].split(" #")[0].strip(), ""))
            else:
                found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def fixed_words(output: str) -> list[str]:
    """The words of an output that do not vary between runs: names, headings and the program's own text."""
    return [word for word in output.split() if not re.search(r"\d|^[num]?s,?$|iB$", word)]


def run(typed: list[tuple[str, str]], folder: Path) -> int:
    """Run commands in one shell, as a reader does: `. .venv/bin/activate` lasts. Return the exit code."""
    script = "\n".join(f"echo '@@@ {i}'; echo; {command}" for i, (command, _) in enumerate(typed))
    done = subprocess.run(
        ["/bin/bash", "-ec", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    printed = re.split(r"^@@@ \d+$", done.stdout, flags=re.MULTILINE)[1:]
    for (command, shown), output in zip(typed, printed):
        missing = [word for word in fixed_words(shown) if word not in output.split()]
        print(f"{'FAILED' if missing else 'ok':8}{command}" + (f": not printed: {missing}" if missing else ""))
        if missing:
            return 1
    if done.returncode != 0:
        print(printed[-1][-3000:] if printed else done.stdout)
        print(f"FAILED  {typed[max(len(printed), 1) - 1][0]}: exit code {done.returncode}")
        return 1
    print(f"{len(typed)} passed, 0 failed")
    return 0


def main() -> int:
    if sys.argv[1:] == ["--quick-start"]:
        section = re.search(r"^## Quick start$.*?^## ", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
        assert section is not None
        return run(commands(section[0]), Path())
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "marey"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        return run(commands((clone / "README.md").read_text(encoding="utf-8")), clone)


if __name__ == "__main__":
    sys.exit(main())
