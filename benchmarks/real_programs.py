"""real_programs.py: the cost of recording real programs: an aiohttp server and leveldb's db_bench.

Each command runs in turn, plain, with Marey and with another profiler where there is one. The figures are
CPU seconds of the whole command, with its children. Sources and packages are downloaded once, into build/real.
"""

import hashlib
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import urllib.request
from pathlib import Path

ROUNDS = 11
BUILD = Path(os.environ["MAREY_BUILD_DIR"])
FOLDER = BUILD.parent / "real"
PROGRAM = Path(__file__).with_name("real_server.py")

AIOHTTP = "aiohttp==3.14.5"
LEVELDB = {
    "leveldb_1.23-4.dsc": "1eae53db8925a1d96f43673eb94c7a4f6b25b6edf283753b29fe80c1068f8173",
    "leveldb_1.23.orig.tar.gz": "9a37f8a6174f09bd622bc723b55881dc541cd50747cbd08831c2a82d620f6d76",
    "leveldb_1.23-4.debian.tar.xz": "fd0b3772e20b6c85a9f133cc21cb1bce9015fd66e4a516576e3efef9cca8428f",
}
ENTRIES = 200_000
READS = 500_000
# A read passes these once each, and Seek twice (in the index and in the block): 8 ranges.
RANGES = (
    ("db/db_impl.cc", r"Status DBImpl::Get\("),
    ("db/version_set.cc", r"Status Version::Get\("),
    ("db/table_cache.cc", r"Status TableCache::Get\("),
    ("db/table_cache.cc", r"Status TableCache::FindTable\("),
    ("table/table.cc", r"Status Table::InternalGet\("),
    ("table/table.cc", r"Iterator\* Table::BlockReader\("),
    ("table/block.cc", r"void Seek\("),
)


def run(command, **variables):
    """Run a command and return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=os.environ | variables, cwd=FOLDER, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{command[0]} exited with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def interleave(ways):
    """Call each function once per round. Return the results by name; the first, unmeasured round warms caches."""
    results = {name: [] for name in ways}
    for i in range(ROUNDS + 1):
        for name, way in ways.items():
            seconds = way()
            if i > 0:
                results[name].append(seconds)
    return results


def print_figure(name, values, against, against_values, target=None):
    """The ratio is the median over rounds; its quartiles show the spread."""
    ratios = [a / b for a, b in zip(values, against_values)]
    low, ratio, high = statistics.quantiles(ratios, n=4)
    print(f"{name}: {ratio:.2f}x of {against}, quartiles {low:.2f} to {high:.2f}", file=sys.stderr)
    figure = {"name": name, "value": statistics.median(values), "unit": "s", "against": against}
    figure |= {"against_value": statistics.median(against_values), "ratio": ratio, "target": target}
    print(json.dumps(figure | {"quartiles": [low, high]}), flush=True)


def server():
    """400 requests to an aiohttp server, as a command."""
    python = FOLDER / "python" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", FOLDER / "python"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", AIOHTTP], check=True)
    # PYTHONPATH holds the build folder's package.
    marey = [python, "-m", "marey", "run", "--force", "-o", FOLDER / "server.marey"]
    ways = {
        "plain": lambda: run([python, PROGRAM]),
        "marey run": lambda: run([*marey, PROGRAM]),
        "marey run -q": lambda: run([*marey, "-q", PROGRAM]),
        "cProfile": lambda: run([python, "-m", "cProfile", "-o", FOLDER / "server.profile", PROGRAM]),
    }
    seconds = interleave(ways)
    print_figure("aiohttp_run", seconds["marey run"], "plain", seconds["plain"], "<= 1.35")
    print_figure("aiohttp_run_quiet", seconds["marey run -q"], "plain", seconds["plain"])
    print_figure("aiohttp_cprofile", seconds["cProfile"], "plain", seconds["plain"])


def debian_folder():
    """The address of leveldb's folder on the mirror that apt uses."""
    command = ["apt-get", "download", "--print-uris", "libleveldb1d"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return found.split("'")[1].rpartition("/")[0]


def fetch_leveldb():
    """Debian's source package, unpacked into FOLDER/leveldb."""
    if (FOLDER / "leveldb").exists():
        return
    folder = debian_folder()
    for name, digest in LEVELDB.items():
        with urllib.request.urlopen(f"{folder}/{name}") as response:
            content = response.read()
        if hashlib.sha256(content).hexdigest() != digest:
            sys.exit(f"{folder}/{name}: unexpected content")
        (FOLDER / name).write_bytes(content)
    unpack = ["dpkg-source", "--no-check", "-x", "leveldb_1.23-4.dsc", "leveldb"]
    subprocess.run(unpack, cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)


def add_ranges(source):
    """Put MAREY_FUNCTION at the top of the functions that a read passes."""
    for name, function in RANGES:
        text = (source / name).read_text()
        text, count = re.subn(rf"^( *{function}[^;{{]*\{{)", r"\1 MAREY_FUNCTION();", text, flags=re.MULTILINE)
        if count != 1:
            sys.exit(f"{name}: {count} functions match {function}")
        (source / name).write_text("#include <marey/marey.h>\n" + text)


def build_leveldb(name, with_ranges):
    """Build db_bench and return its path."""
    source, build = FOLDER / f"leveldb_{name}", FOLDER / f"leveldb_{name}_build"
    program = build / "db_bench"
    if program.exists():
        return program
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(FOLDER / "leveldb", source)
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_STANDARD=20", "-DLEVELDB_BUILD_TESTS=OFF"]
    if with_ranges:
        add_ranges(source)
        include = Path(__file__).resolve().parent.parent / "include"
        options.append(f"-DCMAKE_CXX_FLAGS=-I{include} -I{BUILD}/include")
        options.append(f"-DCMAKE_CXX_STANDARD_LIBRARIES={BUILD}/libmarey.so.0 -Wl,-rpath,{BUILD}")
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", *options], **quiet)
    jobs = os.environ.get("JOBS") or str(os.cpu_count())
    subprocess.run(["cmake", "--build", build, "--target", "db_bench", "-j", jobs], **quiet)
    return program


def count_ranges(capture):
    table = subprocess.run([BUILD / "marey", "info", capture], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"([\d,]+) ranges", table).group(1).replace(",", ""))


def leveldb():
    """Random reads of leveldb: without Marey, with 8 ranges per read that are not recorded, and recorded."""
    fetch_leveldb()
    plain, ranged = build_leveldb("plain", False), build_leveldb("ranged", True)
    database, capture = f"--db={FOLDER / 'database'}", FOLDER / "leveldb.marey"
    run([plain, database, f"--num={ENTRIES}", "--benchmarks=fillseq"])
    reads = [database, "--use_existing_db=1", f"--num={ENTRIES}", f"--reads={READS}", "--benchmarks=readrandom"]

    def recorded():
        capture.unlink(missing_ok=True)
        return run([ranged, *reads], MAREY=f"out={capture}")

    ways = {"plain": lambda: run([plain, *reads]), "idle": lambda: run([ranged, *reads]), "recorded": recorded}
    seconds = interleave(ways)
    print_figure("leveldb_idle", seconds["idle"], "plain", seconds["plain"])
    print_figure("leveldb_recorded", seconds["recorded"], "plain", seconds["plain"])
    ranges = count_ranges(capture)
    added = statistics.median(a - b for a, b in zip(seconds["recorded"], seconds["plain"]))
    print(f"leveldb: {ranges / READS:.1f} ranges per read", file=sys.stderr)
    print(json.dumps({"name": "leveldb_range", "value": added / ranges * 1e9, "unit": "ns"}))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    server()
    leveldb()
