"""Defaults of options from files, completion scripts, and leaving out what must not be shared."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import SOURCE
from running import environment

import marey


def run(folder, *words, home=None, **changes):
    command = [sys.executable, "-m", "marey", *map(str, words)]
    variables = environment(HOME=str(home or folder / "nobody"), XDG_CONFIG_HOME="", **changes)
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "app.py").write_text("def work(): pass\nfor _ in range(3): work()\n")
    return tmp_path


def recorded(folder, *options):
    done = run(folder, "run", "-q", "--force", "-o", "app.marey", *options, "app.py", "--secret")
    assert done.returncode == 0, done.stderr
    return folder / "app.marey"


def test_pyproject_sets_defaults_that_the_command_line_overrides(folder):
    recorded(folder)
    (folder / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.marey.report]\nlimit = 1\nby_thread = true\n")
    (folder / "inner").mkdir()
    for place in (folder, folder / "inner"):
        done = run(place, "report", folder / "app.marey")
        assert "more row" in done.stdout and "thread" in done.stdout.splitlines()[0], done.stderr
    assert "more row" not in run(folder, "report", "app.marey", "--limit", "0").stdout


def test_the_users_file_comes_after_the_projects(folder):
    recorded(folder)
    (folder / ".config").mkdir()
    (folder / ".config/marey.toml").write_text('[report]\nlimit = 2\nformat = "csv"\n')
    (folder / "pyproject.toml").write_text("[tool.marey.report]\nlimit = 1\n")
    assert len(run(folder, "report", "app.marey", home=folder).stdout.splitlines()) == 2  # titles and a row


def test_run_takes_options_of_sessions_from_files(folder):
    (folder / "pyproject.toml").write_text('[tool.marey.run]\nmax-depth = 1\nexclude = ["nothing/*.py", "none"]\n')
    trace = marey.load(recorded(folder))
    assert not any(row["name"].endswith(": work") for row in trace.to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("colour = 1", "unknown option (see marey report --help)"),
        ('limit = "many"', "expected a non-negative integer"),
        ("by_thread = 3", "expected true or false"),
        ('output = "/etc/passwd"', "cannot be set in a file"),
        ("sort = total", "line 2: expected KEY = VALUE, with texts in quotation marks"),
        ("limit 5", "line 2: expected KEY = VALUE"),
        ('sort = "total', "line 2: expected KEY = VALUE"),
        ("limit = 5 by_thread = true", "line 2: expected KEY = VALUE"),
        ('exclude = ["a", # comment\n "b"\nlimit = 1', "line 4: expected KEY = VALUE"),
        ("limit = 1\n[tool.marey.report", "line 3: expected KEY = VALUE"),
    ],
)
def test_wrong_defaults_are_one_line_of_error(folder, line, message):
    recorded(folder)
    (folder / "pyproject.toml").write_text(f"[tool.marey.report]\n{line}\n")
    done = run(folder, "report", "app.marey")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "pyproject.toml" in done.stderr and message in done.stderr


def test_sections_of_other_programs_are_not_checked(folder):
    recorded(folder)
    others = '[tool.other]\nrows 5\nlong = """\nseveral lines"""\nlists = [\n  [1, 2],\n]\n'
    ours = '[tool.marey.report]\r\nexclude = [ # comment\n  "a \\" b", \'it]\',\n]\n\nlimit = 1 # comment\n'
    (folder / "pyproject.toml").write_text(others + ours)
    assert "(--limit 0 shows all)" in run(folder, "report", "app.marey").stdout


def profiled(folder, table, given="config=True", shown=""):
    """Create a profiler in a project with these defaults, and return what is printed of it, or the error."""
    (folder / "app.py").write_text(f"import marey; p = marey.profile({given}); print({shown})\n")
    (folder / "pyproject.toml").write_text(f"[tool.marey.profile]\n{table}\n")
    done = subprocess.run([sys.executable, "app.py"], cwd=folder, env=environment(), capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.splitlines()[-1]


def test_profile_takes_session_options_from_files(folder):
    table = 'policy = "ring"\nexclude = ["x"]\nmax-bytes = 4096'
    shown = "p.session_options['policy'], p.session_options['max_bytes']"
    assert profiled(folder, table, "config=True", shown) == "ring 4096"


def test_a_library_reads_no_files_unless_it_is_asked(folder):
    shown = "p.with_stack, p.session_options.get('policy')"
    table = 'with_stack = true\npolicy = "ring"'
    assert profiled(folder, table, "", shown) == "False None" == profiled(folder, table, "config=False", shown)
    assert profiled(folder, table, "config=True", shown) == "True ring"
    assert profiled(folder, "not toml", "", "p.enabled") == "True"


def test_editors_know_every_session_option_of_profile():
    """They are read from the source: type checkers see the class, programs do not."""
    text = (SOURCE / "python/marey/recording/options.py").read_text(encoding="utf-8")
    (declared,) = [
        {field.target.id for field in node.body if isinstance(field, ast.AnnAssign)}
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and node.name == "SessionOptions"
    ]
    table = (SOURCE / "include/marey/session_options.h").read_text(encoding="utf-8").partition("kSessionOptions[]")[2]
    names = set(re.findall(r"^    \{&\w+::\w+, \"(\w+)\"", table, re.M))
    own = set(inspect.signature(marey.profile).parameters) | {"devices", "device_activities"}  # activities choose these
    assert names - own == declared


def test_profile_takes_its_own_options_from_files(folder):
    table = 'with_stack = true\nrecord-shapes = true\nc_calls = false\nthreads = "tasks"\nexclude = ["x"]\n'
    table += 'activities = ["cpu"]\nscopes = ["user_scope", "STEP"]\nacc_events = true'
    shown = "p.with_stack, p.record_shapes, p.c_calls, p.acc_events, p.session_options['threads'], "
    shown += "p.session_options.get('exclude'), len(p.activities), bin(p.scopes).count('1')"
    assert profiled(folder, table, "config=True", shown) == "True True False True tasks ('x',) 1 2"
    given = "config=True, with_stack=False, record_shapes=False, threads='all', acc_events=None"
    assert profiled(folder, table, given, shown) == "False False False True all None 1 2"
    assert profiled(folder, "enabled = false", "config=True", "p.enabled") == "False"
    assert profiled(folder, "enabled = false", "True, config=True", "p.enabled") == "True"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('output = "x.marey"', "output for marey.profile: cannot be set in a file"),
        ('schedule = "x"', "schedule for marey.profile: cannot be set in a file"),
        ("with_stack = 1", "with_stack for marey.profile: expected bool, not 1"),
        ('activities = ["gpu"]', "activities for marey.profile: unknown name 'gpu'; known names: CPU, XPU, CUDA"),
        ("colour = 1", "colour"),
        ('policy = "shrink"', "policy"),
    ],
)
def test_wrong_defaults_of_profile_name_their_file(folder, line, message):
    error = profiled(folder, line)
    assert f"Error: {folder / 'pyproject.toml'}: " in error and message in error


def completed(folder, *words):
    script = run(folder, "completion", "bash").stdout
    (folder / "bin").mkdir(exist_ok=True)
    command = folder / "bin" / "marey"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m marey "$@"\n')
    command.chmod(0o755)
    variables = environment(PATH=f"{command.parent}:{os.environ['PATH']}")
    ask = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _marey; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "-c", script + ask], cwd=folder, env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_bash_completes_verbs_options_values_and_files(folder):
    assert completed(folder, "marey", "re") == ["report", "redact"]
    assert "--by-thread" in completed(folder, "marey", "report", "--by")
    assert completed(folder, "marey", "report", "--by", "f") == ["function", "file"]
    assert completed(folder, "marey", "export", "x", "--to", "pp") == ["pprof"]
    assert completed(folder, "marey", "report", "ap") == ["app.py"]


def test_every_option_of_the_help_is_completed(folder):
    text = run(folder, "report", "--help").stdout
    options = re.split("^options:$", text, maxsplit=1, flags=re.MULTILINE | re.IGNORECASE)[1].partition("--by groups")[
        0
    ]
    names = set(re.findall(r"^  .*?(--[a-z-]+)", options, re.MULTILINE))
    assert len(names) > 10 and names <= set(completed(folder, "marey", "report", "--"))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["report", "--by-t"], "--by-thread\tShow one row per name and thread\n"),
        (["redac"], "redact\tWrite a capture without values, arguments and user names\n"),
        (["help", "redac"], "redact\tWrite a capture without values, arguments and user names\n"),
        (["completion", "f"], "fish\t\n"),
        (["report", "--columns", ""], ""),
        (["report", "--max-b"], ""),
        (["nothing", "--"], ""),
    ],
)
def test_completions_have_descriptions(folder, words, found):
    assert run(folder, "--complete", *words).stdout == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid(folder, shell):
    script = run(folder, "completion", shell).stdout
    assert "--complete" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (folder / "script").write_text(script)
    subprocess.run([shell, "-n", "script"], cwd=folder, check=True)


SECRET = """
import marey
marey.thread_name("main")
with marey.record_function_fast("request", keyword_values={"scope": "user_scope", "password": "hunter2"}):
    pass
"""


def test_redacted_captures_hold_no_values_arguments_and_users(folder):
    (folder / "app.py").write_text(SECRET)
    capture = recorded(folder)
    assert b"hunter2" in capture.read_bytes() and b"--secret" in capture.read_bytes()
    done = run(folder, "redact", "app.marey")
    assert done.returncode == 0, done.stderr
    redacted = folder / "app.redacted.marey"
    trace = marey.load(redacted)
    texts = json.dumps([trace.to_arrow(name).to_pylist() for name in trace.tables])
    for secret in ("hunter2", "password", "--secret", os.uname().nodename):
        assert secret not in texts
    before = marey.load(capture)
    times = ["start_ns", "duration_ns", "self_ns"]
    assert trace.to_arrow().select(times) == before.to_arrow().select(times)
    assert "request" in run(folder, "report", redacted).stdout


def test_redact_never_replaces_a_file_unasked(folder):
    recorded(folder)
    (folder / "app.redacted.marey").write_text("mine")
    done = run(folder, "redact", "app.marey")
    assert done.returncode == 2 and "--force" in done.stderr
    assert run(folder, "redact", "app.marey", "-o", "app.marey", "--force").returncode == 2
    assert run(folder, "redact", "app.marey", "--force").returncode == 0


def test_values_and_arguments_can_be_left_out_of_the_recording(folder):
    (folder / "app.py").write_text(SECRET)
    capture = recorded(folder, "--no-values", "--no-command-line")
    assert b"hunter2" not in capture.read_bytes() and b"--secret" not in capture.read_bytes()
    assert "request" in run(folder, "report", capture).stdout
