"""The viewer: trace.view(), prof.view() and marey run --view."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.parse

import pytest
from recorded import report_names

import marey
from marey import Error


def recorded():
    with marey.profile() as prof, marey.record_function("outer"), marey.record_function("inner"):
        pass
    return prof


def ask(url, target, **headers):
    """Return the status and body of an answer; the token comes from the address."""
    parts = urllib.parse.urlsplit(url)
    token = urllib.parse.parse_qs(parts.fragment)["token"][0]
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("GET", target, headers={"Marey-Token": token, **headers})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def ready_outline(url):
    while True:
        outline = json.loads(ask(url, "/api/outline")[1])
        if outline["traces"][0]["state"] != "loading":
            return outline["traces"][0]


def test_a_trace_is_shown_until_its_view_is_closed():
    view = recorded().trace.view(browser=False)
    assert view.url in repr(view)
    assert ask(view.url, "/")[0] == 200
    assert ask(view.url, "/api/outline", **{"Marey-Token": "wrong"})[0] == 403
    outline = ready_outline(view.url)
    assert outline["state"] == "ready" and outline["range_count"] >= 2
    view.close()
    with pytest.raises(OSError):
        ask(view.url, "/")
    view.close()  # once is enough


def test_the_table_of_a_view_equals_that_of_the_command(tmp_path):
    prof = recorded()
    prof.trace.save(tmp_path / "x.marey")
    command = [sys.executable, "-m", "marey", "report", "--json", str(tmp_path / "x.marey")]
    report = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    with prof.view(browser=False) as view:
        ready_outline(view.url)
        status, table = ask(view.url, "/api/table")
    assert status == 200
    assert json.loads(table) == json.loads(report)


def test_a_view_that_nobody_keeps_stays_open():
    url = recorded().view(browser=False).url
    assert ask(url, "/")[0] == 200


def test_a_port_that_is_in_use_is_an_error():
    with recorded().view(browser=False) as view:
        port = urllib.parse.urlsplit(view.url).port
        with pytest.raises(Error, match=f"cannot listen on port {port}: it is in use"):
            recorded().view(port=port, browser=False)
    with pytest.raises(Error, match="invalid port 70000"):
        recorded().view(port=70000, browser=False)


def test_run_view_shows_the_capture_until_it_is_interrupted(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("def f(): pass\nf()\nprint('ran', flush=True)\n")
    changes = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    command = [sys.executable, "-m", "marey", "run", "-q", "--view", "-o", "x.marey", str(script)]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, **changes}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ran\n"
        url = process.stdout.readline().strip()
        assert ready_outline(url)["state"] == "ready"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_to_html_returns_one_file_with_the_data_inside():
    page = recorded().trace.to_html()
    assert page.startswith("<!doctype html>")
    assert {"outer", "inner"} <= report_names(page)
    assert 'src="' not in page


def test_a_report_of_a_trace_whose_thread_has_lost_its_ranges_can_be_made():
    def work():
        for n in range(2000):
            with marey.record_function(f"kept {n % 7}"):
                pass

    with marey.profile() as prof:
        with marey.record_function("left out"):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    trace = prof.trace.filtered("left out")
    assert len(trace) == 2000
    assert trace.to_html().startswith("<!doctype html>")
