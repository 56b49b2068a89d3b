"""Fixtures and helpers for several tests of the Python package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("MAREY_BUILD_DIR", SOURCE / "build" / "release"))

# A sanitizer keeps freed memory, so growth has no meaning.
needs_plain_allocator = pytest.mark.skipif(
    "MAREY_TEST_SANITIZER" in os.environ, reason="the sanitizer keeps freed memory"
)

# Programs that tests start in other folders find the same package.
if os.environ.get("PYTHONPATH"):
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, os.environ["PYTHONPATH"].split(os.pathsep)))


@pytest.fixture
def run_python(tmp_path):
    """Run a program in a new interpreter and folder, and return its output; fail if it fails."""

    def run(text, *options, env=None, arguments=()):
        program = tmp_path / "program.py"
        program.write_text(text)
        done = subprocess.run(
            [sys.executable, *options, str(program), *arguments],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
