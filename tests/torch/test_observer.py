"""The observer is compiled once, and the user is told about it."""

import fcntl
import io
import os
import re
import threading

import pytest

from marey.torch import _observer


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and compilers that only create their output and note that they ran."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("one", "two"):
        program = tmp_path / name
        program.write_text(
            f"#!/bin/sh\necho ran >>{tmp_path}/{name}.runs\n" 'while [ "$1" != -o ]; do shift; done\necho made >"$2"\n'
        )
        program.chmod(0o755)
    return tmp_path


def runs(folder, name):
    path = folder / f"{name}.runs"
    return len(path.read_text().split()) if path.exists() else 0


def test_it_is_compiled_once_for_each_compiler_and_found_again_without_one(cache, monkeypatch, capfd):
    monkeypatch.setenv("CXX", str(cache / "one"))
    first = _observer.build()
    assert _observer.build() == first == _observer.find_built()
    assert runs(cache, "one") == 1
    assert capfd.readouterr().err.count("marey: compiling the observer for PyTorch") == 1
    monkeypatch.setenv("CXX", f"{cache / 'two'} -O3")
    second = _observer.build()
    assert (runs(cache, "one"), runs(cache, "two")) == (1, 1) and second != first
    monkeypatch.setenv("CXX", str(cache / "missing"))
    assert _observer.build() in (first, second)


def test_a_process_that_waits_for_another_ones_compiler_says_so(cache, monkeypatch):
    monkeypatch.setenv("CXX", str(cache / "one"))
    path = _observer.build()
    os.remove(path)
    said = threading.Event()
    lines = []

    def say(text, end="\n"):
        lines.append(text)
        said.set()

    monkeypatch.setattr(_observer, "_say", say)
    with open(os.path.join(os.path.dirname(path), "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=_observer.build)
        waiting.start()
        assert said.wait(60)
        with open(path, "w"):
            pass  # the other process has compiled it
    waiting.join()
    assert len(lines) == 1 and "another process is compiling the observer" in lines[0]
    assert runs(cache, "one") == 1


class Terminal(io.StringIO):
    """A terminal that does something once a text has been shown on it."""

    def __init__(self, text, then):
        super().__init__()
        self.text = text
        self.then = then

    def isatty(self):
        return True

    def write(self, text):
        super().write(text)
        if self.then is not None and self.text in self.getvalue():
            then, self.then = self.then, None
            then()
        return len(text)


def test_a_terminal_shows_how_long_it_has_taken(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    terminal = Terminal(" s\x1b", lambda: os.close(os.open(pipe, os.O_WRONLY)))  # now the command ends
    monkeypatch.setattr("sys.stderr", terminal)
    assert _observer._run(["cat", str(pipe)], "compiling") == (0, "")
    line = r"marey: compiling, takes about half a minute(\rmarey: compiling: \d+ s\x1b\[K)+\n"
    assert re.fullmatch(line, terminal.getvalue())


def test_without_standard_error_nothing_is_printed_and_nothing_fails(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    monkeypatch.setattr("sys.__stderr__", None)
    assert _observer._run(["echo", "fine"], "compiling") == (0, "fine\n")
