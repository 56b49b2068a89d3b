"""The pytest marker ``marey`` counts operators, too."""

import subprocess
import sys

MODULE = """
import pytest
import torch

@pytest.mark.marey(calls={"aten::copy_": 2, "torch.clone": "<=1"})
def test_copies():
    values = torch.zeros(3)
    for _ in range(COPIES):
        values.copy_(torch.ones(3))
"""


def run(folder, copies):
    (folder / "test_it.py").write_text(MODULE.replace("COPIES", str(copies)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "marey_pytest", "test_it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def test_a_test_fails_with_one_more_copy(tmp_path):
    done = run(tmp_path, 2)
    assert done.returncode == 0, done.stdout
    done = run(tmp_path, 3)
    assert done.returncode == 1 and "marey: aten::copy_ was called 3 times, expected 2" in done.stdout, done.stdout
