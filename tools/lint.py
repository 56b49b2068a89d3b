#!/usr/bin/env python3
"""lint.py [--alone] TIDY: lints the shipped C++ sources with clang-tidy, and parses the fuzzers.

clang-tidy runs over the files of a room together, as they are built (build/release), which takes a sixth of the time.
It also reports clang's thread safety analysis: the locks that marey/detail/thread_safety.h declares are held where they
must be. Fuzzers are not built for tests, so they are only parsed. A missing include does not show in files that are
read together: --alone lets the compiler parse every file by itself (build/lint) instead. A command that passed does not
run again until its sources, a header or the rules change; the stamps are in build/tidy.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source_files import ROOT, repository_files

STAMPS = ROOT / "build/tidy"
TARGETS = re.compile(r" -o CMakeFiles/marey_(objects|view|view_objects|cli|cli_objects|cuda|python)\.dir/")
FILTER = r"--header-filter=(include/marey|src)/.*\.(h|cpp)$"
NOISE = re.compile(r"^$|warnings? generated|^Suppressed |^Use -header-filter")


def commands(folder: str) -> list[dict[str, str]]:
    entries = json.loads((ROOT / folder / "compile_commands.json").read_text())
    found = [e for e in entries if TARGETS.search(e["command"]) and not re.search(r"/nanobind/|/page\.cpp$", e["file"])]
    if folder == "build/lint":
        model = next(e for e in found if "marey_objects.dir/" in e["command"])
        for fuzzer in sorted(map(str, (ROOT / "src").rglob("*_fuzzer.cpp"))):
            command = model["command"].replace(model["file"], fuzzer)
            found.append({**model, "file": fuzzer, "command": command})
    return found


def sources(file: str) -> list[str]:
    """The file, and for a file that CMake made of several, those."""
    text = Path(file).read_text()
    return [file, *re.findall(r'#include "(/[^"]+)"', text)] if "/Unity/" in file else [file]


def headers_digest() -> hashlib._Hash:
    """Of all headers that a source may include."""
    digest = hashlib.sha256()
    for path in repository_files(ROOT):
        if path.startswith(("include/", "src/")) and path.endswith(".h"):
            digest.update((ROOT / path).read_bytes())
    return digest


def run(job: tuple[list[str], str, str]) -> bool:
    command, folder, key = job
    stamp = STAMPS / hashlib.sha256(key.encode()).hexdigest()[:40]
    if stamp.exists():
        return True
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = [line for line in done.stdout.splitlines() if not NOISE.search(line)]
    if done.returncode == 0:
        stamp.touch()
    elif output:
        print("\n".join(output), flush=True)
    return done.returncode == 0


def main() -> int:
    STAMPS.mkdir(parents=True, exist_ok=True)
    alone, tidy = sys.argv[1] == "--alone", sys.argv[-1]
    rules = headers_digest()
    rules.update((ROOT / ".clang-tidy").read_bytes() + Path(__file__).read_bytes())
    jobs = []
    for folder in ("build/release", "build/lint"):
        for entry in commands(folder):
            if alone != (folder == "build/lint") and not entry["file"].endswith("_fuzzer.cpp"):
                continue
            content = "".join(Path(name).read_text() for name in sources(entry["file"]))
            key = f"{folder} {rules.hexdigest()} {entry['command']} {content}"
            if folder == "build/release":
                # Shadowing is left to the compiler below: between files of a room it is harmless.
                flags = ("-Wno-unknown-warning-option", "-Wno-shadow", "-Wthread-safety")
                command = [tidy, "--quiet", "-p", folder, FILTER, *(f"--extra-arg={flag}" for flag in flags)]
                jobs.append(([*command, entry["file"]], str(ROOT), key))
            else:
                words = shlex.split(entry["command"])
                del words[words.index("-o") : words.index("-o") + 2]
                jobs.append(([*words, "-fsyntax-only", "-Werror"], entry["directory"], key))
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        failed = list(pool.map(run, jobs)).count(False)
    print(f"lint: {len(jobs)} commands, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
