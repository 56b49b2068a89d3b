"""``marey ranks`` on a Python program that uses MPI, recorded as the guide says. Needs an MPI at build time."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from running import environment, functions, write

LIBRARY = pathlib.Path(os.environ.get("MAREY_BUILD_DIR", "")) / "libmarey_mpi.so"
RANKS, COLLECTIVES, SLOW = 8, 30, 5
# As mpi4py does, it finds MPI in the libraries that are loaded. Open MPI's MPI_COMM_WORLD is an object.
PROGRAM = f"""
    import ctypes, time
    mpi = ctypes.CDLL(None)
    mpi.MPI_Init(None, None)
    world = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world"))
    rank = ctypes.c_int()
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))

    def compute():
        time.sleep(0.05 if rank.value == {SLOW} else 0.01)

    for _ in range({COLLECTIVES}):
        compute()
        mpi.MPI_Barrier(world)
    mpi.MPI_Finalize()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The captures of the ranks of a job."""
    mpirun = shutil.which("mpirun")
    if not LIBRARY.is_file() or mpirun is None or "LD_PRELOAD" in os.environ:
        pytest.skip("built without MPI, or with a sanitizer whose library must come first")
    if "Open MPI" not in subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout:
        pytest.skip("the program works with Open MPI")
    folder = tmp_path_factory.mktemp("job")
    script = write(folder, PROGRAM)
    command = [mpirun, "--oversubscribe", "--allow-run-as-root", "-np", str(RANKS)]
    command += [sys.executable, "-m", "marey", "run", "-q", "-o", "app.marey", "--"]
    command += ["env", f"LD_PRELOAD={LIBRARY}", sys.executable, script]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def ranks(folder, *options):
    command = [sys.executable, "-m", "marey", "ranks", *options, "."]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True).stdout


def test_each_collective_is_counted_once(job):
    assert re.search(rf"^collectives +{COLLECTIVES} matched$", ranks(job), re.MULTILINE)
    captures = list(job.glob("*.marey"))
    assert len(captures) == RANKS
    for capture in captures:
        assert functions(capture)["compute"] == COLLECTIVES
        assert functions(capture)["MPI_Barrier"] == COLLECTIVES


def test_the_slow_rank_is_found_and_waiting_is_part_of_communication(job):
    report = json.loads(ranks(job, "--json"))
    assert all(rank["waiting_ns"] <= rank["communication_ns"] for rank in report["ranks"])
    assert report["rank_totals"]["worst_rank"] == SLOW
    assert [finding["rule"] for finding in report["rank_findings"] if finding["rank"] == SLOW]
