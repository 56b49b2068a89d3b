"""``marey diff`` and ``marey.diff()``: what changed between recordings of real programs."""

import json
import subprocess
import sys

import pytest
from running import environment, recorded, write

import marey

PROGRAM = """
    import sys

    def parse(text):
        return text.split()

    def load(times):
        for _ in range(times):
            parse("a b c")

    def main():
        for _ in range(10):
            load({times})

    main()
    print("finished", file=sys.stderr)
"""


def diff(folder, *words):
    """Return what `marey diff` printed, its errors and its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "marey", "diff", *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout, done.stderr, done.returncode


def json_of(folder, *words):
    out, errors, code = diff(folder, *words, "--json")
    assert code == 0, errors
    return json.loads(out)


def causes(result):
    return {count["name"]: (count["old"], count["new"]) for count in result["diff_counts"] if count["causes"]}


@pytest.fixture
def two_programs(tmp_path):
    """old/app.py, and new/app.py, which parses one time more in each load and has a function more above the others."""
    for side, times in (("old", 2), ("new", 3)):
        (tmp_path / side).mkdir()
        text = PROGRAM.format(times=times)
        if side == "new":
            text = text.replace("def parse", "def unused():\n        pass\n\n    def parse")
        write(tmp_path / side, text, "app.py")
    return tmp_path


def record(folder, side, *options):
    assert recorded(["app.py"], folder / side, run_options=("-q", "-o", f"../{side}.marey", *options))[2] == 0
    return folder / f"{side}.marey"


def test_one_more_call_is_the_only_cause_and_lines_that_moved_are_matched(two_programs):
    old, new = record(two_programs, "old"), record(two_programs, "new")
    result = json_of(two_programs, "old.marey", "new.marey")
    assert causes(result) == {"app.py(6): parse": (20, 30)}
    rows = {row["name"]: row for row in result["diff_rows"] if "app.py" in row["name"]}
    assert rows["app.py(9): load"]["match"] == "line" and rows["app.py(9): load"]["old_name"] == "app.py(6): load"
    assert rows["app.py(6): parse"]["old_calls"] == 20
    difference = sum(row["difference"] for row in result["diff_rows"])
    assert difference == result["diff"]["difference"] == result["diff"]["new"] - result["diff"]["old"]
    assert result["diff"]["verdict"] is None
    assert marey.diff(old, marey.load(new))["diff_counts"] == result["diff_counts"]
    out, _, _ = diff(two_programs, "old.marey", "new.marey")
    assert "app.py(6): parse in app.py(9): load" in out and "times may differ by chance" in out
    by_function = marey.diff(old, new, by="function", rows=2)
    assert len(by_function["diff_rows"]) == 2
    names = {row["name"] for row in marey.diff(old, new, by="function")["diff_rows"]}
    assert {"app.py: load", "app.py: parse"} <= names


def test_programs_are_recorded_in_turns(two_programs):
    words = ["--runs", "2", "--warmups", "0", "--keep", "kept", "old/app.py", "new/app.py"]
    result = json_of(two_programs, *words)
    assert result["diff"]["in_turns"] and result["diff"]["old_runs"] == result["diff"]["new_runs"] == 2
    assert result["diff"]["verdict"] in ("slower", "faster", "same", "cannot tell")
    assert causes(result) == {"app.py(6): parse": (20, 30)}
    kept = sorted(path.name for path in (two_programs / "kept").glob("*.marey"))
    assert kept == ["new-001.marey", "new-002.marey", "old-001.marey", "old-002.marey"]
    assert "finished" in (two_programs / "kept" / "old-001.txt").read_text()
    files = ["kept/old-001.marey", "kept/old-002.marey", "--", "kept/new-001.marey", "kept/new-002.marey"]
    out, errors, _ = diff(two_programs, "--in-turns", *files)
    assert "old       kept/old-001.marey and 1 more" in out and errors == ""
    sides = [[two_programs / file for file in side] for side in (files[:2], files[3:])]
    assert causes(marey.diff(*sides, in_turns=True)) == causes(result)


def test_a_program_that_fails_is_named_with_its_last_words(two_programs):
    write(two_programs, "raise ValueError('too bad')", "bad.py")
    out, errors, code = diff(two_programs, "--runs", "2", "old/app.py", "bad.py")
    assert code == 2 and out == ""
    assert "new 'bad.py' exited with code 1" in errors and "ValueError: too bad" in errors


def test_two_commits_are_built_and_compared(two_programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)

    git("init", "-q")
    for side in ("old", "new"):
        (folder / "app.txt").write_bytes((two_programs / side / "app.py").read_bytes())
        git("add", ".")
        git("commit", "-q", "-m", side)
    words = ["--runs", "1", "--warmups", "0", "--git", "HEAD~1..HEAD", "--build", "cp app.txt app.py", "--json"]
    out, errors, code = diff(folder, *words, "--", "app.py")
    assert code == 0, errors
    assert causes(json.loads(out)) == {"app.py(6): parse": (20, 30)}
    assert not list(folder.glob("app.py"))
    trees = subprocess.run(["git", "worktree", "list"], cwd=folder, capture_output=True, text=True, check=True)
    assert len(trees.stdout.splitlines()) == 1
    _, errors, code = diff(folder, "--runs", "1", "--git", "HEAD~1..HEAD", "--build", "echo no; exit 3", "--", "app.py")
    assert code == 2 and "the build of HEAD~1 exited with code 3; the last line of its output: no" in errors


def test_a_running_program_is_compared_with_a_finished_one(two_programs):
    old = record(two_programs, "old")
    text = (two_programs / "new" / "app.py").read_text() + "print('ready', flush=True)\nsys.stdin.read()\n"
    (two_programs / "new" / "app.py").write_text(text)
    command = [sys.executable, "-m", "marey", "run", "-q", "-o", "../new.marey", "app.py"]
    with subprocess.Popen(
        command, cwd=two_programs / "new", env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout.readline() == b"ready\n"
        result = marey.diff(old, two_programs / "new.marey")
        program.stdin.close()
    assert "unfinished" in {warning["code"] for warning in result["diff_warnings"]}
    assert causes(result)["app.py(6): parse"] == (20, 30)


def torch_trace(path, kernel, copies, steps=4):
    """A trace as PyTorch writes it: steps with a matrix product, whose kernel is launched, and copies."""
    events = []

    def event(name, category, start, duration, thread=1, **args):
        events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1,
                "tid": thread,
                "ts": start,
                "dur": duration,
                "args": args,
            }
        )

    for step in range(steps):
        at = step * 1000
        event(f"ProfilerStep#{step}", "user_annotation", at, 900)
        event("aten::mm", "cpu_op", at + 10, 100)
        event("cudaLaunchKernel", "cuda_runtime", at + 20, 10, correlation=step + 1)
        event(kernel, "kernel", at + 40, 200, 7, correlation=step + 1, device=0, stream=7)
        for copy in range(copies):
            event("aten::copy_", "cpu_op", at + 200 + copy * 10, 5)
    info = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}
    path.write_text(json.dumps(info))
    return path


def test_pytorch_traces_are_compared_per_step_and_kernels_below_their_operators(tmp_path):
    old = torch_trace(tmp_path / "old.json", "Cijk_Ailk_Bljk", 2)
    new = torch_trace(tmp_path / "new.json", "sm90_xmma_gemm", 3, steps=6)
    result = marey.diff(old, new, metric="gpu")
    assert result["diff"]["per_step"]
    assert causes(result)["aten::copy_"] == (2, 3)
    (row,) = result["diff_rows"]
    assert (row["match"], row["name"], row["old_name"]) == ("guess", "sm90_xmma_gemm", "Cijk_Ailk_Bljk")
    assert row["path"][-2:] == ["aten::mm", "sm90_xmma_gemm"] and row["old"] == row["new"] == 200_000
    kinds = {total["kind"]: (total["old"], total["new"]) for total in result["diff_totals"]}
    assert kinds["launches"] == (1, 1) and kinds["steps"] == (4, 6)
    out, _, _ = diff(tmp_path, "old.json", "new.json", "--by", "kernel")
    assert "sm90_xmma_gemm (guess: was Cijk_Ailk_Bljk)" in out


def recorded_allocations(bytes_of_load):
    session = marey.Session()
    session.start(profile_memory=True)
    with marey.record_function("main"), marey.record_function("load"):
        marey.report_allocation(4096, bytes_of_load)
        marey.report_allocation(8192, 50)
        marey.report_allocation(8192, -50)
    marey.report_allocation(12288, 10)
    return session.stop()


def test_allocated_bytes_and_those_at_the_peak_are_compared():
    old, new = recorded_allocations(100), recorded_allocations(300)
    for metric, before, after in (("bytes", 150, 350), ("peak", 150, 350)):
        result = marey.diff(old, new, metric=metric)
        rows = {tuple(row["path"]): (row["old"], row["new"]) for row in result["diff_rows"]}
        assert rows[("main", "load")] == (before, after)
    kinds = {total["kind"]: (total["old"], total["new"]) for total in result["diff_totals"]}
    assert kinds["allocations"] == (3, 3) and kinds["allocated bytes"] == (160, 360)
    (count,) = result["diff_counts"]
    assert (count["kind"], count["name"], count["old"], count["new"]) == ("allocated bytes", "load", 150, 350)


def test_markdown_keeps_one_line_per_row_whatever_the_names_are(tmp_path):
    for side, count in (("old", 1), ("new", 2)):
        session = marey.Session()
        session.start()
        for _ in range(count):
            with marey.record_function('a|b "c"\nd `e` <script>'):
                pass
        session.stop().save(tmp_path / f"{side}.marey")
    out, _, code = diff(tmp_path, "old.marey", "new.marey", "--markdown")
    assert code == 0
    (row,) = [line for line in out.splitlines() if line.startswith("| 1 | 2 |")]
    assert row.replace("\\|", "").count("|") == 6 and "\\n" in row


def test_the_same_file_twice_is_not_a_comparison(two_programs):
    record(two_programs, "old")
    out, _, code = diff(two_programs, "old.marey", "old.marey")
    assert code == 0 and "warning: a run is compared with itself" in out and "counts that differ" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one.marey"], "expected two files"),
        (["one.marey", "two.marey", "three.marey"], "several on each side of --"),
        (["missing.marey", "other.marey"], "missing.marey: No such file"),
        (["--runs", "0", "a", "b"], "--runs must be at least 1"),
        (["--runs", "2", "a"], "--runs expects two commands"),
        (["--git", "a..b", "--", "x"], "need --runs"),
        (["--runs", "1", "--git", "main", "--", "x"], "expected two commits"),
        (["--rename", "x", "a", "b"], "expected OLD=NEW"),
        (["--by", "thread", "a", "b"], "expected one of path"),
    ],
)
def test_wrong_words_are_refused_with_advice(tmp_path, words, message):
    out, errors, code = diff(tmp_path, *words)
    assert code == 2 and out == "" and message in errors and errors.count("\n") == 1


def test_wrong_arguments_in_python_are_errors():
    with pytest.raises(marey.Error, match="expected one of path, name"):
        marey.diff(marey.Trace(), marey.Trace(), by="thread")
    with pytest.raises(marey.Error, match="a run is needed on each side"):
        marey.diff([], marey.Trace())
    with pytest.raises(marey.Error, match="steps are compared by their times"):
        marey.diff(marey.Trace(), marey.Trace(), by="step", metric="gpu")
