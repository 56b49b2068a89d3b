"""``marey run`` with real programs: they behave as without it, and their calls are in the captures."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest
from running import captures, environment, functions, plain, recorded, report

import marey

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def needs(module):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed")


def test_a_script_is_reported_by_its_functions(tmp_path):
    script = str(EXAMPLES / "spell.py")
    assert recorded([script], tmp_path, run_options=["-q", "-o", "x.marey"]) == plain([script], tmp_path)
    counts = functions(tmp_path / "x.marey")
    assert (counts["distance"], counts["cheapest"], counts["nearest"]) == (4500, 112500, 300)
    rows = {row[0]: [int(cell) for cell in row[1:]] for row in self_and_covered(tmp_path / "x.marey")}
    (main,) = [times for name, times in rows.items() if name.endswith(": main")]
    (distance,) = [times for name, times in rows.items() if name.endswith(": distance")]
    assert main[1] >= distance[1] >= distance[0] > 0


def self_and_covered(path):
    return report(path, "--csv", "--columns", "name,self_cpu_time_total,covered")


def test_a_pool_has_its_work_in_the_workers(tmp_path):
    script = str(EXAMPLES / "pool.py")
    out, errors, code = recorded([script, "4"], tmp_path, run_options=["-o", "pool.marey"])
    assert (out, code) == plain([script, "4"], tmp_path)[::2]
    main, *workers = captures(tmp_path)
    assert len(workers) == 2 and "2 other processes" in errors
    assert functions(main)["is_prime"] == 0
    assert sum(functions(worker)["is_prime"] for worker in workers) == 8000
    assert "hottest" in errors


def test_pytest_runs_its_tests(tmp_path):
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "counted", str(EXAMPLES / "project")]
    out, _, code = recorded(arguments, tmp_path, run_options=["-q", "-o", "x.marey"], PYTHONDONTWRITEBYTECODE="1")
    assert code == 0 and "39 passed" in out
    assert functions(tmp_path / "x.marey")["count"] >= 39


@needs("numpy")
def test_linear_algebra_gives_the_same_numbers(tmp_path):
    script = str(EXAMPLES / "algebra.py")
    assert recorded([script], tmp_path, run_options=["-q", "-o", "x.marey"]) == plain([script], tmp_path)
    counts = functions(tmp_path / "x.marey")
    assert counts["largest_eigenvalue"] == 1 and counts["lstsq"] >= 1 and counts["norm"] >= 300


@needs("pip")
def test_pip_installs_into_a_folder(tmp_path):
    project = tmp_path / "wheel"
    (project / "tiny-1.0.dist-info").mkdir(parents=True)
    import zipfile

    with zipfile.ZipFile(tmp_path / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "answer = 42\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    arguments = [
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--target",
        "there",
        "tiny-1.0-py3-none-any.whl",
    ]
    _, errors, code = recorded(
        arguments, tmp_path, run_options=["-q", "-o", "x.marey"], PIP_DISABLE_PIP_VERSION_CHECK="1"
    )
    assert code == 0, errors
    assert (tmp_path / "there" / "tiny.py").read_text() == "answer = 42\n"
    packages = {row[0] for row in report(tmp_path / "x.marey", "--by", "package", "--csv", "--columns", "name")}
    assert {"pip", "(standard library)"} <= packages


def test_a_program_with_a_shebang_line_is_recorded(tmp_path):
    program = tmp_path / "tool"
    program.write_text(f"#!{sys.executable}\ndef f(): pass\nf()\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "marey", "run", "-q", "-o", "x.marey", "./tool"], cwd=tmp_path, env=environment()
    )
    assert done.returncode == 0
    assert functions(tmp_path / "x.marey")["f"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program with another user id")
def test_a_program_with_more_privileges_than_its_user_is_not_recorded(tmp_path):
    start = pathlib.Path(marey.__file__).parent / "_start"
    program = "import os, sys; print('marey' in sys.modules, os.environ['MAREY'])"
    variables = environment(PYTHONPATH=str(start), MAREY="out=app.marey,calls=on")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.setresuid(65534, 0, 0),  # as root's set-uid program, started by another user
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False out=app.marey,calls=on\n", "")
    assert captures(tmp_path) == []
