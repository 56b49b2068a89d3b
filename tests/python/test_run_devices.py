"""``marey run --gpu``: device work is in the capture and in the summary; a program runs without a device too."""

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from conftest import BUILD
from running import captures, recorded

import marey

LIBRARY = BUILD / "tests" / "libmarey_simulated.so"
FOUND = {"LD_LIBRARY_PATH": str(LIBRARY.parent)}  # where the recorder looks for libraries of devices
PROGRAM = """
import ctypes

def train(device):
    for _ in range(20):
        device.marey_simulated_launch(0, 1, b"bead_kernel", ctypes.c_uint64(50_000))
    device.marey_simulated_launch(0, 1, b"slow_kernel", ctypes.c_uint64(9_000_000))

train(ctypes.CDLL(LIBRARY))
print("trained")
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.replace("LIBRARY", repr(str(LIBRARY))))
    return path


def test_the_summary_shows_device_work(program, tmp_path):
    out, errors, code = recorded([program.name], tmp_path, run_options=("--gpu=simulated",), **FOUND)
    assert (out, code) == ("trained\n", 0)
    (line,) = [line for line in errors.splitlines() if line.startswith("gpu ")]
    assert re.search(r"busy .*: slow_kernel (9|8\.9)\S* ms \(1x\), bead_kernel (1|99\d)\S* [mu]s \(20x\)", line)
    assert re.search(r"^next: +marey gpu train\.\d+\.marey ", errors, re.M)


def test_kernels_belong_to_the_functions_that_launched_them(program, tmp_path):
    recorded([program.name], tmp_path, run_options=("-q", "--gpu=simulated"), **FOUND)
    (path,) = captures(tmp_path)
    trace = marey.load(path)
    kernels = [event for event in trace.events() if event.name in ("bead_kernel", "slow_kernel")]
    assert len(kernels) == 21
    (train,) = [event for event in trace.events() if event.name.endswith(": train")]
    assert train.device_time_total == pytest.approx(10_000, rel=0.01)


def test_a_program_runs_without_the_device(tmp_path):
    (tmp_path / "plain.py").write_text("print('ran')\n")
    out, errors, code = recorded(["plain.py"], tmp_path, run_options=("--gpu=nowhere",))
    assert (out, code) == ("ran\n", 0)
    assert "There is no device named 'nowhere'." in errors


def test_the_doctor_of_the_package_reports_its_python(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "marey", "doctor"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("ok  python ") and line.endswith(sys.executable) for line in lines)
    assert any(line.startswith("ok  calls ") for line in lines)


@pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch is here")
def test_the_doctor_reports_missing_pytorch(tmp_path):
    (tmp_path / "torch").mkdir()  # a folder with that name is not a package
    done = subprocess.run(
        [sys.executable, "-m", "marey.launch.doctor"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "off\tpytorch\tnot installed for this Python\tfor PyTorch programs: pip install torch" in (
        done.stdout.splitlines()
    )


def test_processes_that_are_left_alone_do_not_load_the_recorder_with_cuda(tmp_path):
    (tmp_path / "told.py").write_text("import os; print('CUDA_INJECTION64_PATH' in os.environ)\n")
    assert recorded(["told.py"], tmp_path, run_options=("-q", "--gpu"))[0] == "True\n"
    assert recorded(["told.py"], tmp_path, run_options=("-q", "--gpu", "--no-children"))[0] == "False\n"
