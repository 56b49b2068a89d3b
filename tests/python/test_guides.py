"""The examples in docs/guide run: Python blocks in order for each page, and the marey commands in console blocks.

A comment above a block says what it needs: ``<!-- needs: numpy -->`` skips it if the module is missing, and
``<!-- not run: needs a GPU -->`` never runs it. Commands that use SQL need DuckDB, and `marey mcp` needs mcp. Of
outputs, only the functions that a page shows are compared.
"""

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import SOURCE
from running import environment

import marey

GUIDE = SOURCE / "docs" / "guide"
BLOCK = re.compile(
    r"^(?:<!-- (needs|not run): ([^\n]*) -->\n)?```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL
)
FUNCTION = re.compile(r"\w+\.py\(\d+\): [\w.]+(?!\S)")  # without <locals> and such, which depend on the Python version
SQL = re.compile(r"^\$ marey (?:sql|ask) |--to parquet", re.MULTILINE)
COMMANDS_THAT_NEED = {
    "duckdb": SQL,
    "pyarrow": SQL,
    "mcp": re.compile(r"^\$ marey mcp ", re.MULTILINE),
}

# Stands for the programs that the guides call train.py, ./app and so on.
PROGRAM = """#!{python}
import marey

def load():
    with marey.record_function("load"):
        marey.report_allocation(4096, 100, 100, 100)

load()
"""
PROGRAMS = ("script.py", "train.py", "app", "build/app", "solver")


class Block:
    def __init__(self, page, match):
        self.page = page
        condition, needs, self.language, self.text = match.groups()
        self.line = page.count("\n", 0, match.start(4)) + 1
        self.skipped = None
        if condition == "not run":
            self.skipped = needs
        else:
            modules = [needs] if condition == "needs" else []
            modules += [name for name, command in COMMANDS_THAT_NEED.items() if command.search(self.text)]
            missing = [name for name in modules if not is_available(name)]
            if missing:
                self.skipped = f"needs {', '.join(missing)}"


def is_available(name):
    return marey.nvtx.is_available() if name == "NVTX" else importlib.util.find_spec(name) is not None


def blocks(path, language):
    page = path.read_text()
    found = [Block(page, match) for match in BLOCK.finditer(page)]
    return [block for block in found if block.language == language]


def pages_with(language):
    return [path.name for path in sorted(GUIDE.glob("*.md")) if blocks(path, language)]


def command_blocks():
    return [
        pytest.param(block, id=f"{path.stem}:{block.line}")
        for path in sorted(GUIDE.glob("*.md"))
        for block in blocks(path, "console")
        if re.search(r"^\$ marey ", block.text, re.MULTILINE)
    ]


@pytest.mark.parametrize("name", pages_with("python"))
def test_the_python_blocks_of_a_page_run(name, run_python):
    found = blocks(GUIDE / name, "python")
    run = [block for block in found if block.skipped is None]
    if not run:
        pytest.skip(", ".join({block.skipped for block in found}))
    program = ""
    for block in run:  # lines keep their numbers, so that a traceback points into the page
        program += "\n" * (block.line - 1 - program.count("\n")) + block.text
    run_python(program)


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """A capture to read, if a block does not record it itself."""
    folder = tmp_path_factory.mktemp("capture")
    (folder / "program.py").write_text(PROGRAM)
    run("marey run -q --memory -o program.marey program.py", folder)
    return folder / "program.marey"


def run(command, folder):
    """Run a marey command line and return its output, standard error included; fail if it fails."""
    words = [sys.executable, "-m", *shlex.split(command, comments=True)]
    done = subprocess.run(
        words, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("block", command_blocks())
def test_the_marey_commands_of_a_block_run(block, tmp_path, capture):
    if block.skipped is not None:
        pytest.skip(block.skipped)
    (tmp_path / "examples").symlink_to(SOURCE / "examples")
    (tmp_path / "build").mkdir()
    for name in PROGRAMS:
        (tmp_path / name).write_text(PROGRAM.format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    output = ""
    for command in re.findall(r"^\$ (marey .*)$", block.text, re.MULTILINE):
        words = shlex.split(command, comments=True)
        if words[1] == "view":  # until Ctrl-C: tests/cli/view.sh
            continue
        reads = [word for word in words if word.endswith(".marey")] if words[1] != "run" else []
        for name in reads:
            if not (tmp_path / name).exists():
                shutil.copy(capture, tmp_path / name)
        output += run(command, tmp_path)
    # Which of the small rows are among those shown differs: Python 3.12 and later also record calls of C functions.
    rows = [line for line in block.text.splitlines() if not re.search(r" <?0\.\d% ", line)]
    assert set(FUNCTION.findall("\n".join(rows))) <= set(FUNCTION.findall(output))


@pytest.mark.parametrize(("commands", "module"), [("sql|ask", "duckdb"), ("sql|ask", "pyarrow"), ("mcp", "mcp")])
def test_commands_are_not_run_without_the_packages_that_they_need(commands, module, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "is_available", lambda name: name != module)
    found = [block for path in sorted(GUIDE.glob("*.md")) for block in blocks(path, "console")]
    with_command = [block for block in found if re.search(f"marey ({commands}) ", block.text)]
    assert with_command and all(block.skipped is not None for block in with_command)


def test_every_fence_with_a_prompt_is_a_console_block():
    """So that no command escapes these tests."""
    for path in sorted(GUIDE.glob("*.md")):
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
            assert language == "console" or not text.startswith("$ "), (path.name, text)
