"""What several tests of marey.torch need."""

import os
import subprocess
import sys

import pytest
import torch

torch.set_num_threads(1)  # the operators of these tests are small

if os.environ.get("PYTHONPATH"):
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, os.environ["PYTHONPATH"].split(os.pathsep)))


@pytest.fixture
def run_python(tmp_path):
    """Runs a program in a fresh interpreter, in a folder of its own, and gives what it printed; fails when it fails."""

    def run(text, *options, env=None, arguments=(), before=()):
        program = tmp_path / "program.py"
        program.write_text(text)
        done = subprocess.run(
            [*before, sys.executable, *options, str(program), *arguments],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
