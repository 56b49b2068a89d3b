#!/usr/bin/env python3
"""check_odr.py: finds types of one name that the library, its plug-ins, the command and the extension define twice.

Two such types in one program are undefined behaviour, and no compiler sees it, because each file is right alone. GCC's
link-time optimisation compares them (-Wodr). The files are compiled as in build/release, but for that and without other
optimisation, and everything is linked into one object from which no code is made. Objects are kept in build/odr; only
those whose sources or headers changed are compiled again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lint import commands, headers_digest, sources
from source_files import ROOT

OBJECTS = ROOT / "build/odr"
FLAGS = ["-O0", "-g0", "-w", "-flto", "-fno-fat-lto-objects"]


def compile_object(words: list[str], folder: str, target: Path) -> bool:
    """`words`: the command that makes another object of the file."""
    words = [word for word in words if not re.match(r"-(O.|g|W.*)$", word)]
    words[words.index("-o") + 1] = f"{target}.new"
    if subprocess.run([*words, *FLAGS], cwd=folder).returncode != 0:
        return False
    Path(f"{target}.new").rename(target)
    return True


def link(compiler: str, objects: list[Path]) -> str:
    """Return what the linker says of types that differ, or nothing."""
    together = [compiler, "-r", "-flinker-output=rel", "-flto", "-O0", "-Wodr", "-Werror=odr", "-z", "muldefs"]
    done = subprocess.run(
        [*together, *map(str, objects), "-o", os.devnull], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.stdout if done.returncode != 0 else ""


def main() -> int:
    entries = commands("build/release")
    compiler = next(word for word in shlex.split(entries[0]["command"]) if re.search(r"(c|g|clang)\+\+[-.\d]*$", word))
    if "Free Software" not in subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, text=True).stdout:
        print(f"{compiler} is not GCC: not checked")
        return 0
    OBJECTS.mkdir(parents=True, exist_ok=True)
    headers = headers_digest().hexdigest()
    jobs = {}
    for entry in entries:
        content = "".join(Path(name).read_text() for name in sources(entry["file"]))
        key = hashlib.sha256(f"{headers} {FLAGS} {entry['command']} {content}".encode()).hexdigest()
        jobs[OBJECTS / f"{key[:40]}.o"] = entry
    for old in set(OBJECTS.iterdir()) - set(jobs):
        old.unlink()
    missing = [(shlex.split(e["command"]), e["directory"], target) for target, e in jobs.items() if not target.exists()]
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        if not all(pool.map(lambda job: compile_object(*job), missing)):
            return 1
    report = link(compiler, sorted(jobs))
    print(report, end="")
    print(f"check_odr: {len(jobs)} objects, {len(missing)} compiled{', types differ' if report else ''}")
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main())
