"""``marey run`` with real programs: they behave as without it, and their calls are in the captures."""

import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import signal
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
    out, errors, code = recorded([script, "4"], tmp_path, run_options=["--keep-captures", "-o", "pool.marey"])
    assert (out, code) == plain([script, "4"], tmp_path)[::2]
    main, *workers = captures(tmp_path)
    # Since Python 3.14, a server forks the workers, and another process tracks resources.
    others = 2 if multiprocessing.get_start_method() == "fork" else 4
    assert len(workers) == others and f"{others} other processes" in errors
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


def test_a_program_that_did_not_start_leaves_no_capture(tmp_path):
    (tmp_path / "broken.py").write_text("def f(:\n")
    for arguments in (["nofile.py"], ["-m", "nomodule"], ["broken.py"], ["-c", "1 +"]):
        out, errors, code = recorded(arguments, tmp_path, run_options=[])
        assert code == plain(arguments, tmp_path)[2] != 0
        assert errors.endswith("marey: nothing was recorded: the program did not start\n"), errors
        assert captures(tmp_path) == [], arguments
    (tmp_path / "failing.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("raise SystemExit(3)\n")
    for arguments in (["failing.py"], ["-m", "failing"], ["package"], ["-c", "raise SystemExit(3)"]):
        assert recorded(arguments, tmp_path, run_options=["-q", "--force", "-o", "x.marey"]) == ("", "", 3)
        assert captures(tmp_path), arguments


def test_the_code_of_a_command_is_not_mixed_with_other_code_without_a_file(tmp_path):
    code = "from collections import namedtuple\nnamedtuple('P', 'x')(1)\ndef f(): pass\nf(); exec('f()')"
    recorded(["-c", code], tmp_path, run_options=["-q", "-o", "x.marey"])
    names = {row[0]: int(row[1]) for row in report(tmp_path / "x.marey", "--csv", "--columns", "name,count")}
    assert (names["<command>(1): <module>"], names["<command>(3): f"]) == (1, 2)
    assert names["<string>(1): <module>"] == 2  # of exec(), and of eval() in namedtuple()
    assert names["<string>(1): <lambda>"] == 1 and "<command>(1): <lambda>" not in names
    files = [row[0] for row in report(tmp_path / "x.marey", "--by=file", "--csv", "--columns", "name,count")]
    assert "<command>" in files and "<string>" in files


def test_the_summary_says_that_compiled_code_is_not_visible(tmp_path):
    (tmp_path / "x.py").write_text("def f(): return sorted([2, 1])\nf()\n")
    _, errors, _ = recorded(["x.py"], tmp_path, run_options=["--no-c-calls"])
    (line,) = [line for line in errors.splitlines() if line.startswith("c calls")]
    assert "Cython, mypyc" in line and "--c-calls" in line
    _, errors, _ = recorded(["x.py"], tmp_path, run_options=["--c-calls"])
    assert "c calls" not in errors


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_a_program_that_changes_its_root_keeps_its_capture(tmp_path):
    (tmp_path / "jail").mkdir()
    (tmp_path / "x.py").write_text("import os\nos.chroot('jail')\nos.chdir('/')\ndef f(): pass\nf()\n")
    assert recorded(["x.py"], tmp_path, run_options=["-q", "-o", "x.marey"]) == ("", "", 0)
    assert functions(tmp_path / "x.marey")["f"] == 1


def test_the_report_says_how_the_program_died(tmp_path):
    (tmp_path / "crash.py").write_text("import ctypes\ndef die():\n    ctypes.string_at(0)\ndie()\n")
    _, errors, code = recorded(["crash.py"], tmp_path, run_options=["-o", "x.marey"])
    assert code == -signal.SIGSEGV
    line = next(line for line in errors.splitlines() if line.startswith("the program died"))
    assert re.fullmatch(r"the program died of SIGSEGV in .*string_at.* <- die <- <module>", line)
    for verb in ("report", "tree", "info"):
        command = [sys.executable, "-m", "marey", verb, str(tmp_path / "x.marey")]
        out = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout
        assert out.splitlines()[0] == line, verb


def test_the_open_stack_of_each_thread_is_shown_when_a_program_dies(tmp_path):
    (tmp_path / "x.py").write_text(
        "import os, signal, threading\n"
        "started = threading.Barrier(2)\n"
        "def waits():\n    started.wait(); threading.Event().wait()\n"
        "def kills():\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "threading.Thread(target=waits).start()\nstarted.wait()\nkills()\n"
    )
    _, errors, code = recorded(["x.py"], tmp_path, run_options=["-o", "x.marey"])
    assert code == -signal.SIGKILL
    head, *stacks = errors[errors.index("the program died") :].split("\n\n")[0].splitlines()
    assert head == "the program died of SIGKILL" and len(stacks) == 2
    assert "kills <- <module>" in stacks[0] and " <- waits <- " in stacks[1]


def test_a_program_that_ends_normally_has_no_such_line(tmp_path):
    (tmp_path / "x.py").write_text("raise SystemExit(3)\n")
    _, errors, code = recorded(["x.py"], tmp_path, run_options=["-o", "x.marey"])
    assert code == 3 and "the program" not in errors
    (tmp_path / "y.py").write_text("import os\ndef f(): os._exit(4)\nf()\n")
    _, errors, code = recorded(["y.py"], tmp_path, run_options=["-o", "y.marey"])
    assert code == 4
    # Python 3.12 and later record the call of the C function too.
    place = r"(posix\._exit <- f|y\.py\(2\): f) <- <module>"
    assert re.search(f"the program exited with code 4 without closing its capture in {place}\n", errors)


def test_the_cause_is_unknown_for_a_program_that_marey_run_did_not_start(tmp_path):
    program = "import os, marey\nwith marey.record_function('work'): os.kill(os.getpid(), 9)\n"
    capture = str(tmp_path / "x.marey")
    killed = subprocess.run([sys.executable, "-c", program], env=environment() | {"MAREY": f"out={capture}"})
    assert killed.returncode == -9
    command = [sys.executable, "-m", "marey", "report", capture]
    out = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout
    assert out.startswith("the program ended without closing its capture; the cause is unknown")


def test_the_overhead_is_what_the_recorded_events_cost(tmp_path):
    program = "import marey\ndef f(): pass\nfor _ in range(3000): f()\nfor _ in range(2000): marey.instant('x')\n"
    (tmp_path / "program.py").write_text(program)
    for _ in range(10):  # a call that was no slower with the hook, on a busy machine, has no cost
        _, errors, code = recorded(["program.py"], tmp_path, run_options=["--no-c-calls", "-o", "x.marey", "--force"])
        assert code == 0
        info = [sys.executable, "-m", "marey", "info", "--json", "x.marey"]
        facts = json.loads(subprocess.check_output(info, cwd=tmp_path))
        costs = facts["costs_ns"]
        if "python_call" in costs:
            break
    assert facts["instants"] == 2000
    expected = facts["ranges"] * costs["python_call"] + facts["instants"] * costs["instant"]
    # A few ranges may be of other kinds: imports, garbage collections.
    assert facts["overhead"]["total_ns"] == pytest.approx(expected, rel=0.001)
    number, unit = re.search(r"overhead  about ([\d.]+) (\w+) in total", errors).groups()
    assert float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit] == pytest.approx(expected, rel=0.01)
