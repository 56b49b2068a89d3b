"""`marey find`: from the id of a distributed trace to the captures and ranges that belong to it."""

import json
import subprocess
import sys

from running import environment
from web_clients import call_wsgi, greet

import marey
from marey.trace_context import Span
from marey.web import MareyMiddleware

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HEADER = f"00-{TRACE}-00f067aa0ba902b7-01"


def find(folder, *words):
    command = [sys.executable, "-m", "marey", "find", *words]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def record(path, work):
    session = marey.Session()
    session.start()
    work()
    session.stop().save(path)


def test_ranges_are_found_by_the_trace_id_in_any_capture_of_a_folder(tmp_path):
    def marked():
        with marey.record_function_fast("GET /cart", keyword_values=Span(HEADER).values):
            pass
        with marey.record_function_fast("other", keyword_values=Span().values):
            pass

    app = MareyMiddleware(greet, route=lambda environ: "/pay", record=["traceparent"])
    (tmp_path / "captures").mkdir()
    record(tmp_path / "captures/one.marey", marked)
    record(tmp_path / "captures/two.marey", lambda: call_wsgi(app, HTTP_TRACEPARENT=HEADER))
    record(tmp_path / "captures/three.marey", lambda: call_wsgi(app))
    for text in (TRACE, TRACE[:8], TRACE.upper(), HEADER):
        done = find(tmp_path, text, "captures")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0].split() == ["at", "duration", "process", "name", "file"]
        assert [(line.split()[-3:]) for line in lines[1:]] == [
            ["GET", "/cart", "captures/one.marey"],
            ["GET", "/pay", "captures/two.marey"],
        ]
    found = json.loads(find(tmp_path, TRACE, "captures", "--json").stdout)["found_ranges"]
    assert [(row["name"], row["file"]) for row in found] == [
        ("GET /cart", "captures/one.marey"),
        ("GET /pay", "captures/two.marey"),
    ]
    assert find(tmp_path, TRACE, "captures", "--csv", "--columns", "name").stdout == "name\nGET /cart\nGET /pay\n"


def test_a_new_trace_is_found_by_the_id_that_was_sent(tmp_path):
    span = Span()

    def marked():
        with marey.record_function_fast("job", keyword_values=span.values):
            pass

    record(tmp_path / "one.marey", marked)
    assert "job" in find(tmp_path, span.traceparent, "one.marey").stdout


def test_wrong_ids_and_unreadable_files_are_reported(tmp_path):
    record(tmp_path / "one.marey", lambda: None)
    (tmp_path / "bad.marey").write_text("no capture")
    for text in ("4bf9", "x" * 32, "4" * 33, ""):
        done = find(tmp_path, text, "one.marey")
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "trace id" in done.stderr
    done = find(tmp_path, TRACE, "bad.marey", "one.marey")
    assert done.returncode == 2 and not done.stdout
    skipped, missing = done.stderr.splitlines()
    assert skipped.startswith("marey: skipped: bad.marey: ") and missing.endswith(f"no range has the trace id {TRACE}")
