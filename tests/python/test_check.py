"""``marey check`` and ``marey.check()``: rules that recordings of real programs keep or break."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import SOURCE
from running import environment, recorded, write
from test_diff import recorded_allocations, torch_trace

import marey

PROGRAM = """
    import sys
    import marey

    def copy(values):
        return list(values)

    def train_step(copies):
        for _ in range(copies):
            copy([1, 2, 3])

    def main(copies, steps=4):
        for number in range(steps):
            with marey.record_function(f"step#{number}"):
                train_step(copies)

    if __name__ == "__main__":
        main(int(sys.argv[1]))
"""
RULES = """
    # what a step may do
    calls "copy" <= 3 per step
    calls path "main/*/train_step" == 1 per step
    findings == 0 of recording.lost
"""


def check(folder, *words, **changes):
    """Return what `marey check` printed, its errors and its exit code."""
    steps = () if "--step-name" in words else ("--step-name", "step#*")
    done = subprocess.run(
        [sys.executable, "-m", "marey", "check", *steps, *map(str, words)],
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout, done.stderr, done.returncode


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, PROGRAM, "train.py")
    write(tmp_path, RULES, "marey.budgets")
    return tmp_path


def record(folder, name="run.marey", copies=3, options=()):
    _, errors, code = recorded(["train.py", str(copies)], folder, run_options=("-q", "-o", name, *options))
    assert code == 0, errors
    return folder / name


def states(result):
    return {row["rule"]: row["state"] for row in result["check_rules"]}


def test_one_more_copy_in_a_step_breaks_a_rule_at_its_place(folder):
    record(folder)
    out, errors, code = check(folder, "run.marey")
    assert (code, errors) == (0, "")
    assert out.startswith("same: 3 rules, 1 run\n")
    record(folder, "more.marey", copies=4)
    out, _, code = check(folder, "run.marey", "more.marey", "--json")
    result = json.loads(out)
    assert code == 1 and result["check"]["broken"] == 1 and result["check"]["runs"] == 2
    row = result["check_rules"][0]
    assert (row["rule"], row["count"], row["limit_count"]) == ('calls "copy" <= 3 per step', 4, 3)
    assert row["why"] == "in 1 of 2 runs" and row["budgets_line"] == 2
    assert (row["file"], row["line"]) == (str(folder / "train.py"), 4)
    again = marey.check([folder / "run.marey", folder / "more.marey"], folder / "marey.budgets", step="step#*")
    assert again["check"] == result["check"] and states(again) == states(result)
    rows = list(csv.DictReader(io.StringIO(check(folder, "more.marey", "--csv")[0])))
    assert [row["state"] for row in rows] == ["broken", "kept", "kept"]


@pytest.mark.parametrize(
    ("rules", "words", "message"),
    [
        ('calls "copy" < 3\n', [], "marey.budgets:1:14: expected <=, >=, ==, got '<'"),
        ('\n\n calls "cpy" <= 3\n', [], 'marey.budgets:3: matches nothing in run.marey: calls "cpy" <= 3'),
        ('time "copy" <= +1% of baseline\n', [], "needs a baseline (--baseline FILE"),
        (
            "calls <= 9999\n",
            ["--baseline", "missing"],
            "missing: No such file or directory (--write-baseline makes one)",
        ),
        ("calls <= 9999\n", ["--baseline", "train.py"], "train.py: is not a baseline: "),
        ("calls <= 9999\n", ["--baseline", "."], ".: Is a directory"),
        ("calls <= 9999\n", ["--budgets", "none"], "none: No such file or directory (write rules, or start with"),
        ("calls <= 9999 per step\n", ["--step-name", "x"], "has no whole step, which marey.budgets:1 needs"),
        ("calls <= 9999\n", ["run.marey"], "run.marey: is given twice"),
    ],
)
def test_wrong_input_is_an_error_with_its_place(folder, rules, words, message):
    record(folder)
    (folder / "marey.budgets").write_text(rules)
    out, errors, code = check(folder, "run.marey", *words)
    assert (code, out) == (2, "") and message in errors


def test_times_are_compared_with_a_baseline_of_several_runs(folder):
    runs = [record(folder, f"run-{number}.marey") for number in range(3)]
    write(folder, 'time "train_step" <= +900% of baseline\ncalls "copy" == baseline per step\n', "marey.budgets")
    out, errors, code = check(folder, *runs, "--write-baseline", "base")
    assert (code, out) == (0, "") and errors == "marey: wrote base: 2 rules, 3 runs\n"
    text = (folder / "base").read_text()
    lines = text.splitlines()
    assert lines[1:3] == ['"marey_baseline": 1,', '"runs": 3,'] and '"calls \\"copy\\" p100 per step": [3],' in lines
    assert len(re.search(r'train_step\\"": \[(.*)\]', text)[1].split(",")) == 3
    check(folder, *runs, "--write-baseline", "again")
    assert (folder / "again").read_text() == text
    out, _, code = check(folder, *runs, "--baseline", "base", "--trust-machine")
    assert code == 0 and out.startswith("same: 2 rules, 3 runs; baseline of 3 runs\n")
    write(folder, 'time "train_step" <= -90% of baseline\n', "marey.budgets")
    assert check(folder, *runs, "--baseline", "base", "--trust-machine")[2] == 1
    (folder / "base").write_text(text.replace('"host":"', '"host":"not-'))
    out, _, code = check(folder, *runs, "--baseline", "base", "--strict")
    assert code == 3 and "another machine" in out
    assert check(folder, *runs, "--baseline", "base")[2] == 0
    assert check(folder, *runs, "--baseline", "base", "--trust-machine")[2] == 1


def test_a_suggestion_is_kept_by_its_recordings(folder):
    runs = [record(folder, f"run-{number}.marey") for number in range(2)]
    out, errors, code = check(folder, *runs, "--suggest")
    assert (code, errors) == (0, "")
    assert 'calls "train.copy" <= 3 per step\n' in out and "time steps median <= +10% of baseline\n" in out
    (folder / "marey.budgets").write_text(out)
    assert check(folder, *runs, "--write-baseline", "base")[2] == 0
    out, _, code = check(folder, *runs, "--baseline", "base", "--trust-machine", "--json")
    assert code == 0 and set(states(json.loads(out)).values()) <= {"kept", "cannot tell"}


def test_counts_of_a_killed_program_are_not_kept(folder):
    text = (folder / "train.py").read_text() + "    print('ready', flush=True)\n    sys.stdin.read()\n"
    (folder / "train.py").write_text(text)
    command = [sys.executable, "-m", "marey", "run", "-q", "-o", "run.marey", "train.py", "3"]
    rules = 'calls "copy" <= 99\ncalls "main" <= 0\ncalls "copy" <= 3 per step'

    def result():
        return states(marey.check(folder / "run.marey", rules=rules, step="step#*"))

    expected = {
        'calls "copy" <= 99': "cannot tell",
        'calls "main" <= 0': "broken",
        'calls "copy" <= 3 per step': "kept",
    }
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout.readline() == b"ready\n"
        assert result() == expected  # it is still growing
        os.killpg(program.pid, signal.SIGKILL)
    assert result() == expected


def test_counts_of_a_run_that_lost_events_are_never_kept(folder):
    text = (folder / "train.py").read_text().replace("main(int(sys.argv[1]))", "main(200_000)")
    (folder / "train.py").write_text(text)
    record(folder, options=("--max-bytes", "256KB", "--policy", "drop"))
    write(folder, 'calls "copy" <= 9999999\ncalls "copy" >= 1\ncalls "nothing" == 0\n', "marey.budgets")
    out, _, code = check(folder, "run.marey", "--strict")
    assert code == 3 and out.startswith("cannot tell: 3 of 3 rules, 1 run\n") and "run.marey lost events" in out
    assert check(folder, "run.marey")[2] == 0
    _, errors, code = check(folder, "run.marey", "--write-baseline", "base")
    assert code == 2 and "cannot be a baseline: run.marey lost events" in errors and not (folder / "base").exists()


def test_traces_of_pytorch_and_other_tools_are_checked(tmp_path):
    trace = torch_trace(tmp_path / "torch.json", "gemm", copies=3)
    rules = """
        calls "aten::copy_" <= 2 per step
        launches device 0 == 1 per step
        gpu "ge*" <= 200 us per step
        time "ProfilerStep#*" p95 <= 900 us
        time steps max <= 1 ms
        calls path "ProfilerStep*/aten::mm/cudaLaunchKernel" == 4
    """
    result = marey.check(trace, rules=rules)
    assert [row["state"] for row in result["check_rules"]] == ["broken"] + ["kept"] * 5
    assert result["check_rules"][0]["count"] == 3
    corpus = SOURCE / "tests" / "data" / "corpus"
    for file, rule in (
        ("sqlite/nsight.sqlite", "launches <= 99"),
        ("perfetto/sdk.pftrace", "calls <= 99"),
        ("chrome/torch.json.gz", 'calls "aten::*" <= 9999'),
    ):
        (row,) = marey.check(corpus / file, rules=rule)["check_rules"]
        assert row["state"] == "kept" and row["count"] > 0, file
    (row,) = marey.check(corpus / "perf" / "cpu_clock.txt", rules="calls <= 999999")["check_rules"]
    assert (row["state"], row["why"].rpartition("cpu_clock.txt ")[2]) == ("cannot tell", "is made of samples")


def test_memory_is_the_most_that_was_held():
    result = marey.check(recorded_allocations(1 << 20), rules="memory peak <= 1 MiB\nmemory peak <= 1.001 MiB")
    assert [(row["state"], row["bytes"]) for row in result["check_rules"]] == [
        ("broken", (1 << 20) + 50),
        ("kept", (1 << 20) + 50),
    ]


NAME = 'a|b "c"\nd%0A::error::<e> & \x1b[31m]]>'


@pytest.fixture
def hostile(tmp_path):
    """A recording of a range with a bad name, and a rule about it that it breaks."""
    session = marey.Session()
    session.start()
    with marey.record_function(NAME):
        pass
    session.stop().save(tmp_path / "bad.marey")
    rules = f"calls {json.dumps(NAME)} <= 0\ncalls {json.dumps(NAME)} <= 1\ntime {json.dumps(NAME)} <= baseline\n"
    (tmp_path / "bad %,:rules").write_text(rules)
    write(
        tmp_path,
        '{"marey_baseline": 1, "runs": 1, "values": {' + json.dumps(f"time {json.dumps(NAME)}") + ": [1]}}",
        "base",
    )
    return tmp_path


def run_hostile(folder, *words, **changes):
    return check(folder, "bad.marey", "--budgets", "bad %,:rules", "--baseline", "base", *words, **changes)


def test_annotations_and_summaries_of_workflows_escape_names(hostile):
    summary = hostile / "summary.md"
    summary.write_text("before\n")
    out, errors, code = run_hostile(hostile, "--github", "--markdown", GITHUB_STEP_SUMMARY=str(summary))
    assert code == 1
    first, second = errors.splitlines()
    assert first.startswith("::error file=bad %25%2C%3Arules,line=1,title=marey%3A broken::calls ")
    assert second.startswith("::warning file=bad %25%2C%3Arules,line=3,title=marey%3A cannot tell::time ")
    assert "\\nd%250A" in first and "\x1b" not in first and first.endswith("%0Ameasured 1")
    assert out.startswith("broken: 1 of 3 rules, 1 run; baseline of 1 run\n\n| state |")
    rows = [line for line in out.splitlines() if line.startswith(("| broken", "| kept", "| cannot"))]
    assert len(rows) == 3 and len({row.replace("\\|", "").count("|") for row in rows}) == 1
    assert "\\<e>" in out  # or it would be a tag
    assert summary.read_text() == "before\n" + out + "\n"


def test_junit_files_are_valid(hostile):
    assert run_hostile(hostile, "--junit", "out.xml")[2] == 1
    root = ElementTree.parse(hostile / "out.xml").getroot()
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "3", "1")
    (suite,) = root
    assert [[part.tag for part in case] for case in suite] == [["failure"], ["skipped"], []]
    assert suite[0].get("name").startswith("calls ") and "<e> &" in suite[0].get("name")
    schema = SOURCE / "tests" / "data" / "junit-10.xsd"
    if shutil.which("xmllint") is None:
        pytest.skip("needs xmllint to validate with a schema")
    subprocess.run(["xmllint", "--noout", "--schema", schema, "out.xml"], cwd=hostile, check=True)


def steps_of_action():
    """The steps of action.yml: their names, variables and scripts, with the defaults of its inputs."""
    text = (SOURCE / "action.yml").read_text()
    inputs, steps = text.split("\nruns:\n")
    defaults = dict(re.findall(r"^  ([\w-]+):\n(?:    .*\n)*?    default: (.*)$", inputs, re.MULTILINE))
    for step in re.split(r"\n    - name: ", steps)[1:]:
        variables = dict(re.findall(r"^        (\w+): \$\{\{ inputs\.([\w-]+) \}\}$", step, re.MULTILINE))
        script = re.search(r"      run: \|\n((?:        .*\n?|\n)+)", step)[1]
        yield step.split("\n")[0], variables, defaults, "\n".join(line[8:] for line in script.splitlines())


def test_the_steps_of_the_action_record_check_and_comment(folder):
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    commands = {"marey": f'exec "{sys.executable}" -m marey "$@"', "gh": 'printf "%s\\n" "$@" >> gh.txt'}
    for name, line in commands.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (bin_folder / name).chmod(0o755)
    done = {}
    given = {"command": "train.py 4", "runs": "2", "check-options": "--step-name 'step#*'", "token": "x"}
    for name, variables, defaults, script in steps_of_action():
        if name == "Install Marey":
            continue  # it needs a network
        values = {key: {**defaults, **given}[of].strip('"') for key, of in variables.items()}
        path = f"{bin_folder}:{os.environ['PATH']}"
        done[name] = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=folder,
            env=environment(PATH=path, NUMBER="7", GITHUB_STEP_SUMMARY=str(folder / "summary.md"), **values),
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert [step.returncode for step in done.values()] == [0, 1, 0], done
    assert done["Check"].stdout.startswith("broken: 1 of 3 rules, 2 runs\n")
    assert done["Check"].stderr.startswith(
        '::error file=train.py,line=4,title=marey%3A broken::calls "copy" <= 3 per step%0Ameasured 4 ('
    )
    kept = sorted(path.name for path in (folder / "marey-check").iterdir())
    assert kept == ["comment.md", "junit.xml", "run-1.marey", "run-2.marey"]
    arguments = (folder / "gh.txt").read_text().split("\n")
    assert arguments[:3] == ["pr", "comment", "7"] and "marey-check/comment.md" in arguments
    assert (folder / "summary.md").read_text().startswith("broken: 1 of 3 rules, 2 runs\n")


def test_a_million_names_and_a_rule_about_one_of_them(tmp_path):
    events = [{"ph": "X", "name": f"n{number}", "ts": number, "dur": 1, "pid": 1, "tid": 1} for number in range(20_000)]
    path = Path(tmp_path / "names.json")
    path.write_text(json.dumps(events))
    rules = 'calls "n1999?" <= 10\ncalls "n7" == 1\ncalls <= 20000'
    assert [row["count"] for row in marey.check(path, rules=rules)["check_rules"]] == [10, 1, 20_000]
