"""The command on a terminal: progress lines for work that takes long, and none in CI jobs and pipes."""

import os
import pty
import subprocess
import sys

import pytest
from running import environment


class OnTerminal:
    """``marey report`` of a file that can be read only when release() is called."""

    def __init__(self, folder, name, **variables):
        self.path = folder / name
        os.mkfifo(self.path)
        self.terminal, theirs = pty.openpty()
        # Nothing else keeps the terminal open, so that reading it ends with the process.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "marey", "report", name],
            cwd=folder,
            env=environment(**{"TERM": "xterm", "CI": "", **variables}),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self.text = b""

    def read(self):
        """Wait for more output; return whether there is any."""
        try:
            data = os.read(self.terminal, 4096)
        except OSError:  # the process has ended
            data = b""
        self.text += data
        return bool(data)

    def release(self):
        with self.path.open("wb") as file:
            file.write(b'{"traceEvents": []}')
        while self.read():
            pass
        self.process.wait(timeout=60)
        os.close(self.terminal)


@pytest.mark.skipif("MAREY_TEST_SANITIZER" in os.environ, reason="the command is tested without it")
def test_long_work_is_shown_on_a_terminal_but_not_in_a_ci_job(tmp_path):
    # Those that must not show anything start first, and are still waiting when the last one shows its line.
    quiet = [OnTerminal(tmp_path, "ci.json", CI="true"), OnTerminal(tmp_path, "dumb.json", TERM="dumb")]
    shown = OnTerminal(tmp_path, "shown.json")
    while b"reading shown.json ... 1 s" not in shown.text:
        assert shown.read(), shown.text
    for each in (*quiet, shown):
        each.release()
    assert shown.text.count(b"\x1b[K") >= 2  # the line is erased at the end
    for each in quiet:
        assert b"reading" not in each.text and b"\x1b[K" not in each.text
