"""Opening a large capture in `marey view`: until the page can show its outline, until all tracks are there, and again.

Needs large_capture_program, which tests/programs has. The figures of the page itself need node, Chromium and the npm
packages of `make viewers`; without them they are left out. MAREY_BENCH_MILLIONS (100) is the number of ranges.
"""

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

BUILD = Path(os.environ["MAREY_BUILD_DIR"]).resolve()
SOURCE = Path(__file__).resolve().parent.parent
MAREY = str(BUILD / "marey")
REPETITIONS = 3


def figure(name: str, value: float, unit: str, target: str = "", against: str = "", floor: float = 0) -> None:
    line = {"name": name, "value": round(value, 4), "unit": unit, "target": target}
    if against:
        line |= {"against": against, "against_value": round(floor, 4), "ratio": round(value / floor, 3)}
    print(json.dumps(line), flush=True)


@contextlib.contextmanager
def viewer(*arguments: str) -> Iterator[tuple[str, str, str]]:
    """Runs `marey view`; gives the page's address, the server's address and the token."""
    command = [MAREY, "view", "--no-browser", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            match = re.match(r"(http://127\.0\.0\.1:\d+)/#token=(\w+)", line)
            assert match, line
            yield line.strip(), match[1], match[2]
        finally:
            process.send_signal(signal.SIGINT)


def open_seconds(*arguments: str) -> tuple[float, float]:
    """The time until the outline is known, and until all tracks are."""
    begin = time.perf_counter()
    outlined = 0.0
    with viewer(*arguments) as (_, address, token):
        while True:
            request = urllib.request.Request(f"{address}/api/outline", headers={"Marey-Token": token})
            with urllib.request.urlopen(request) as answer:
                trace = json.load(answer)["traces"][0]
            now = time.perf_counter() - begin
            if not outlined and "window" in trace:
                outlined = now
            if trace["state"] == "ready":
                return outlined, now
            assert trace["state"] == "loading", trace
            time.sleep(0.01)


def info_seconds(capture: str) -> float:
    begin = time.perf_counter()
    subprocess.run([MAREY, "info", capture], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def wait_for_cache(folder: Path) -> None:
    """Waits until the viewer's copy of the trace is complete; gives up if there will be none."""
    for _ in range(600):
        if list(folder.glob("marey/*.columns")):
            return
        time.sleep(0.1)


def measure_opening(capture: str, folder: Path) -> None:
    info_seconds(capture)  # not measured: reads the file into memory
    read, fresh = [], []
    for _ in range(REPETITIONS):  # in turn, so that both have the same share of a busy machine
        read.append(info_seconds(capture))
        fresh.append(open_seconds("--no-cache", capture))
    figure("view_first_outline", statistics.median(each[0] for each in fresh), "s", "<= 1 s")
    ready = statistics.median(each[1] for each in fresh)
    figure("view_all_tracks", ready, "s", "<= 1.15", "marey info", statistics.median(read))
    with viewer(capture):
        wait_for_cache(folder)
    again = [open_seconds(capture) for _ in range(REPETITIONS)]
    figure("view_second_opening", statistics.median(each[1] for each in again), "s", "<= 1 s")


def measure_page(capture: str) -> None:
    modules = BUILD / "viewers" / "node_modules"
    if not (modules / "playwright-core").is_dir():
        print("the page is not measured: run make viewers first", file=sys.stderr)
        return
    with viewer(capture) as (page, _, _):
        command = ["node", str(SOURCE / "benchmarks" / "view_page.mjs"), page, str(modules)]
        subprocess.run(command, check=True)


def main() -> None:
    program = BUILD / "tests" / "large_capture_program"
    if not program.exists():
        print("large_capture_program is not built", file=sys.stderr)
        return
    figure(
        "view_page_bytes", sum(f.stat().st_size for f in (SOURCE / "web" / "dist").iterdir()) / 1e3, "kB", "<= 250 kB"
    )
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = name
        capture = str(folder / "large.marey")
        subprocess.run([str(program), capture, os.environ.get("MAREY_BENCH_MILLIONS", "100")], check=True)
        measure_opening(capture, folder)
        html = folder / "large.html"
        subprocess.run([MAREY, "report", "--html", "-o", str(html), capture], check=True, stderr=subprocess.DEVNULL)
        figure("view_report_bytes", html.stat().st_size / 1e6, "MB", "<= 3 MB")
        measure_page(capture)


if __name__ == "__main__":
    main()
