"""``marey doctor`` reports whether PyTorch's operators can be recorded."""

import os
import subprocess
import sys

import torch

from marey.torch._observer import build


def doctor(folder, *words, **environment):
    done = subprocess.run(
        [sys.executable, "-m", *(words or ("marey.launch.doctor",))],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def pytorch(lines):
    (line,) = [line.split("\t") for line in lines if "\tpytorch\t" in line]
    return line


def test_the_compiled_observer_is_reported(tmp_path):
    path = build()
    lines = doctor(tmp_path, "marey", "doctor")
    assert f"ok  pytorch    {torch.__version__}, observer: {path}" in lines


def test_a_compiler_is_sufficient_and_nothing_is_compiled(tmp_path):
    elsewhere = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path), "CXX": "/bin/true -x"}
    state, _, fact, help = pytorch(doctor(tmp_path, **elsewhere))
    assert (state, help) == ("ok", "")
    assert fact.startswith(f"{torch.__version__}; /bin/true -x will compile the observer on first use")
    assert list(tmp_path.iterdir()) == []


def test_without_a_compiler_a_remedy_is_suggested(tmp_path):
    elsewhere = {"XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path), "CXX": "/nowhere/c++"}
    state, _, fact, help = pytorch(doctor(tmp_path, **elsewhere))
    assert (state, fact) == ("BAD", f"{torch.__version__}: operators cannot be recorded")
    assert "/nowhere/c++ (CXX) was not found; install one (apt-get install g++), or set CXX" in help


def test_a_pytorch_import_failure_is_reported_beside_the_other_results(tmp_path):
    (tmp_path / "torch.py").write_text("print('noise')\nraise ImportError('libtorch_cpu.so is gone')\n")
    lines = doctor(tmp_path)
    state, _, fact, _ = pytorch(lines)
    assert (state, fact) == ("BAD", "cannot be imported: ImportError: libtorch_cpu.so is gone")
    assert any(line.startswith("ok\tcalls\t") for line in lines)
