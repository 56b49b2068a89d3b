#!/usr/bin/env python3
"""make.py: writes the files that tests/python/test_compatibility.py reads, with the installed Marey, once per release.

Every form that Marey promises to keep readable (docs/formats/compatibility.md) goes into a folder named after the version:
a capture, a run with a child process, a compacted capture, a capture of a killed program, a ring, a saved trace; and its
tables as CSV. Files that are there already are kept.
"""

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

import marey

PROGRAM = """
import asyncio, os, signal, subprocess, sys, threading, time
import marey

@marey.record_function("parse", args="values")
def parse(text):
    return [int(word) for word in text.split()]

def work():
    for turn in range(3):
        with marey.record_function(f"turn {turn}"):
            parse("1 2 3")
            marey.counter("turns", turn)
    marey.instant("done")

async def task(number):
    with marey.record_function("task"):
        await asyncio.sleep(0)
    return number

async def main():
    await asyncio.gather(task(1), task(2))

work()
thread = threading.Thread(target=work, name="worker é")
thread.start()
thread.join()
asyncio.run(main())
if sys.argv[1:] == ["parent"]:
    subprocess.run([sys.executable, __file__], check=True)
if sys.argv[1:] == ["killed"]:
    with marey.record_function("open at the end"):
        os.kill(os.getpid(), signal.SIGKILL)
"""
TABLES = (
    "ranges",
    "instants",
    "counters",
    "arguments",
    "links",
    "tracks",
    "threads",
    "processes",
    "metadata",
    "problems",
)


def main() -> None:
    command = Path(sys.executable).with_name("marey")
    target = Path(__file__).resolve().parent / marey.__version__
    target.mkdir(exist_ok=True)

    def run(*words: object, check: bool = True) -> None:
        subprocess.run([command, *map(str, words)], check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        program = here / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        options = ("--include", "*/program.py", "-o")
        run("run", *options, here / "capture.marey", program)
        run("run", *options, here / "killed.marey", program, "killed", check=False)
        run("run", *options, here / "run.marey", program, "parent")
        run("run", "--ring", *options, here / "ring.marey", program)
        run("compact", here / "capture.marey", "-o", here / "compacted.marey")
        run("export", "--to", "marey", here / "capture.marey", "-o", here / "saved.marey")
        for capture in sorted(here.glob("*.marey")):
            if (target / f"{capture.name}.gz").exists():
                continue
            with gzip.GzipFile(target / f"{capture.name}.gz", "wb", mtime=0) as out:
                out.write(capture.read_bytes())
            for table in TABLES:
                run("export", "--to", "csv", "--table", table, capture, "-o", here / "table.csv")
                text = (here / "table.csv").read_text(encoding="utf-8").replace(folder, "FOLDER")
                (target / f"{capture.stem}.{table}.csv").write_text(text, encoding="utf-8")
                (here / "table.csv").unlink()


if __name__ == "__main__":
    main()
