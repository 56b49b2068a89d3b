"""Runs programs with and without ``marey run``, and reads their captures."""

import collections
import csv
import io
import os
import re
import subprocess
import sys
import textwrap


def write(folder, text, name="program.py"):
    path = folder / name
    path.write_text(textwrap.dedent(text).lstrip())
    return name


def environment(**changes):
    """This process's environment, without variables that make outputs differ between runs."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAREY")}
    if not variables.get("PYTHONPATH"):
        variables.pop("PYTHONPATH", None)  # an empty one has no effect, and is removed by `marey run --no-children`
    if "ASAN_OPTIONS" in variables:
        variables["ASAN_OPTIONS"] += ":handle_segv=0"  # programs die of the signal, as they do without a sanitizer
    return {**variables, "PYTHONHASHSEED": "0", **changes}


def plain(arguments, folder, options=(), **settings):
    """Run `python OPTIONS ARGUMENTS` and return its standard output, standard error and exit code."""
    return _run([sys.executable, *options, *arguments], folder, **settings)


def recorded(arguments, folder, options=(), run_options=("-q",), **settings):
    """The same under ``marey run``."""
    return _run([sys.executable, *options, "-m", "marey", "run", *run_options, *arguments], folder, **settings)


def _run(command, folder, text="", **changes):
    done = subprocess.run(
        command, cwd=folder, env=environment(**changes), input=text.encode(), capture_output=True, timeout=120
    )
    # Addresses differ from run to run.
    out, errors = (re.sub("0x[0-9a-f]{6,}", "0x...", text.decode()) for text in (done.stdout, done.stderr))
    return out, errors, done.returncode


def captures(folder):
    """The captures in a folder, that of the program itself first."""
    return sorted(folder.glob("*.marey"), key=lambda path: (path.name.count("."), path.name))


def functions(path):
    """Return how often each function was called, by the part of its name after the file and line."""
    counts = collections.Counter()
    for name, count in report(path, "--csv", "--columns", "name,count"):
        counts[name.rpartition("): ")[2]] += int(count)
    return counts


def report(path, *options):
    """The rows of `marey report --csv` for one capture, without their titles."""
    command = [sys.executable, "-m", "marey", "report", "--alone", *options, str(path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


def move_to_host(path, name):
    """Make it look as if a capture had been recorded on another host, whose clock nobody knows."""
    data = bytearray(path.read_bytes())
    boot = bytes(data[56:92])  # FileHeader::boot_id and FileHeader::host
    data[96:352] = name.encode().ljust(256, b"\0")
    path.write_bytes(data.replace(boot, name.encode().ljust(36, b"0")))
