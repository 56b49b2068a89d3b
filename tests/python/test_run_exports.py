"""Files that ``marey export`` writes show a Python program at first sight, and are read back unchanged."""

import json
import subprocess
import sys

import pytest
from running import environment, recorded, report


def marey(*words):
    command = [sys.executable, "-m", "marey", *map(str, words)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    (folder / "app.py").write_text("import colorsys\ndef work(): pass\nwork()\n")
    _, _, code = recorded(["app.py"], folder, run_options=["-q", "-o", "x.marey"])
    assert code == 0
    return folder / "x.marey"


@pytest.fixture(scope="module", params=[".json", ".pftrace"])
def exported(capture, request):
    file = capture.with_suffix(request.param)
    marey("export", capture, "-o", file)
    return file


def counts(file):
    return {row[0]: row[1] for row in report(file, "--csv", "--columns", "name,count")}


def test_exported_ranges_have_the_names_of_the_capture(capture, exported):
    assert "app.py(2): work" in counts(exported) and counts(exported) == counts(capture)


def test_exported_files_are_valid_and_have_the_window_of_the_capture(capture, exported):
    marey("validate", exported)
    windows = [json.loads(marey("info", "--json", file))["window"] for file in (capture, exported)]
    lengths = [window["end_ns"] - window["start_ns"] for window in windows]
    assert lengths[0] == lengths[1] > 0


def test_a_chrome_trace_has_one_process_named_after_the_script(capture):
    events = json.loads(marey("export", capture, "--to=chrome", "-o", "-"))["traceEvents"]
    named = {event["name"]: event["args"]["name"] for event in events if "name" in event.get("args", {})}
    assert named == {"process_name": "app.py", "thread_name": "MainThread"}
    shown = [event for event in events if event["ph"] != "M"]
    assert {event["ph"] for event in shown} == {"X"}
    assert len({event["pid"] for event in shown}) == 1


def test_a_perfetto_trace_shows_the_script_and_functions_first(capture):
    file = capture.with_suffix(".perfetto-trace")
    marey("export", capture, "-o", file)
    content = file.read_bytes()
    for name in (b"app.py", b"MainThread", b"work (app.py:2)", b"import colorsys"):
        assert b"%c" % len(name) + name in content
    (process,) = json.loads(marey("info", "--json", file))["processes"]
    (original,) = json.loads(marey("info", "--json", capture))["processes"]
    assert process == original


def test_a_marey_file_keeps_everything(capture):
    file = capture.with_name("copy.marey")
    marey("export", capture, "--to=marey", "-o", file)
    assert any("importlib._bootstrap" in name for name in {row[0] for row in report(file, "--csv", "--show-importlib")})
