"""Fixtures for the tests of marey.torch."""

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
    """Run a program in a new interpreter and a temporary folder; return its output, or fail if the program fails."""

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
