"""``marey run`` with programs that close all descriptors, as daemons do, and then open their own files."""

import resource
import subprocess
import sys

import pytest
from running import captures, environment, functions, recorded

import marey

CALLS = 500_000

# Enough files to reach the number of Marey's descriptor, which is high.
MANY = min(700, resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 2 // 3)

PROGRAM = """
import os

def empty():
    pass

os.closerange(3, 1000)
files = [open(f"victim{i}", "w+") for i in range(FILES)]
for file in files:
    file.write("hello")
    file.flush()
if MOVES:
    os.chdir("/")
for _ in range(CALLS):
    empty()
for file in files:
    file.seek(0)
    assert file.read() == "hello"
    file.close()
print("done")
"""


def write_program(folder, files, moves=False):
    text = PROGRAM.replace("FILES", str(files)).replace("CALLS", str(CALLS)).replace("MOVES", str(moves))
    (folder / "s.py").write_text(text)


@pytest.mark.parametrize("files", [0, 8, MANY])
def test_a_program_that_closes_all_descriptors_keeps_its_files_and_is_recorded(tmp_path, files):
    write_program(tmp_path, files)
    assert recorded(["s.py"], tmp_path, run_options=("-q", "-o", "x.marey")) == ("done\n", "", 0)
    assert len(list(tmp_path.glob("victim*"))) == files
    assert all(path.read_text() == "hello" for path in tmp_path.glob("victim*"))
    assert captures(tmp_path) == [tmp_path / "x.marey"]
    assert functions(tmp_path / "x.marey")["empty"] == CALLS


def test_it_may_change_its_folder_too(tmp_path):
    write_program(tmp_path, 8, moves=True)
    assert recorded(["s.py"], tmp_path, run_options=("-q", "-o", "x.marey")) == ("done\n", "", 0)
    assert functions(tmp_path / "x.marey")["empty"] == CALLS


def test_a_capture_that_was_closed_and_removed_is_rewritten_as_far_as_possible(tmp_path):
    write_program(tmp_path, MANY)
    program = tmp_path / "s.py"
    program.write_text(program.read_text().replace("files = ", "os.remove('x.marey')\nfiles = "))
    out, errors, code = recorded(["s.py"], tmp_path, run_options=("-q", "-o", "x.marey"))
    assert (out, code) == ("done\n", 0)
    capture = tmp_path / "x.marey"
    closed, removed = errors.splitlines()
    assert closed == (
        f"marey: {capture}: the program closed its file descriptor, and the file cannot be reopened "
        "(No such file or directory); recording stops"
    )
    assert removed == f"marey: {capture}: removed while it was being recorded; writing it again"
    assert all(path.read_text() == "hello" for path in tmp_path.glob("victim*"))
    assert 0 < functions(capture)["empty"] < CALLS
    assert "descriptor_closed" in [code for code, _, _ in marey.load(capture).problems]


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-"])
def test_a_program_runs_with_a_standard_stream_closed(tmp_path, stream):
    arguments = f'-c \'open("ran", "w").close()\' {stream}'
    command = f"{sys.executable} -m marey run -q -o x.marey {arguments}"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment(), timeout=120).returncode == 0
    assert (tmp_path / "ran").exists() and (tmp_path / "x.marey").exists()
