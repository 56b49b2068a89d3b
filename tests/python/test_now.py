"""`marey now` and `marey ps`: programs that hang, looked at from outside, and what those that died were doing."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import BUILD
from running import environment, write

import marey

# Programs that hang, each in its own way, and the range in which they do.
HANGS = {
    "the GIL is held in C": (
        "load_batch",
        """
        import ctypes
        def load_batch(): ctypes.PyDLL(None).sleep(600)
        load_batch()
        """,
    ),
    "two locks": (
        "second",
        """
        import threading
        a, b = threading.Lock(), threading.Lock()
        both = threading.Barrier(2)
        def first():
            with a:
                both.wait()
                with b: pass
        def second():
            with b:
                both.wait()
                with a: pass
        threading.Thread(target=first).start()
        threading.Thread(target=second).start()
        """,
    ),
    "a loop without an end": (
        "spin",
        """
        def spin():
            while True: pass
        spin()
        """,
    ),
    "a child that waits for a dead parent": (
        "wait_for_parent",
        """
        import os, signal, time
        pid = os.getpid()
        read, write = os.pipe()
        def wait_for_parent(): os.read(read, 1)  # the child has the other end, too
        if os.fork() == 0: wait_for_parent()
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        """,
    ),
}


def marey_command(*arguments, folder, **changes):
    command = [sys.executable, "-m", "marey", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(**changes), capture_output=True, text=True, timeout=120)


def start(folder, text, *options, name="x", **changes):
    """Start a program under `marey run`, which it takes with it when it is killed."""
    script = write(folder, text, f"{name}.py")
    command = [sys.executable, "-m", "marey", "run", "-q", "-o", f"{name}.marey", *options, script]
    return subprocess.Popen(
        command, cwd=folder, env=environment(**changes), start_new_session=True, stderr=subprocess.DEVNULL
    )


def end(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def seen(folder, *what, until):
    """Return the tables of `marey now` as soon as this is true of them."""
    for _ in range(400):
        done = marey_command("now", "--json", *what, folder=folder)
        if done.returncode == 0:
            tables = json.loads(done.stdout)
            if until(tables):
                return tables
        time.sleep(0.05)
    raise AssertionError(done.stdout + done.stderr)


def is_open(name):
    return lambda tables: any(re.search(rf"\b{name}$", row["name"]) for row in tables["now_ranges"])


@pytest.mark.parametrize("kind", HANGS)
def test_the_place_of_a_hang_is_named(tmp_path, kind):
    name, text = HANGS[kind]
    process = start(tmp_path, text)
    try:
        tables = seen(tmp_path, ".", until=is_open(name))
        (found,) = [row for row in tables["now_ranges"] if re.search(rf"\b{name}$", row["name"])]
        assert not found["is_waiting"] and found["open_ns"] > 0
        text = marey_command("now", ".", folder=tmp_path).stdout
        assert re.search(rf"^  .*\b{name} [\d.]+ (us|ms|s)", text, re.M)
    finally:
        end(process)


def test_a_process_a_file_and_nothing_lead_to_the_same_program(tmp_path):
    process = start(tmp_path, "import time\ndef rest(): time.sleep(600)\nrest()\n")
    try:
        (row,) = seen(tmp_path, "x.marey", until=is_open("rest"))["now_processes"]
        pid = str(row["pid"])
        assert row["state"] == "running" and row["rank"] is None and row["bytes"] > 0
        assert [each["pid"] for each in seen(tmp_path, pid, until=is_open("rest"))["now_processes"]] == [row["pid"]]
        assert "rest" in marey_command("now", folder=tmp_path).stdout
        assert "rest" in marey_command("tree", pid, folder=tmp_path).stdout
        listed = json.loads(marey_command("ps", "--json", folder=tmp_path).stdout)["now_processes"]
        (own,) = [each for each in listed if each["pid"] == row["pid"]]
        assert own["file"] == str(tmp_path / "x.marey") and own["state"] == "running"
    finally:
        end(process)


def test_what_took_longer_than_usual_says_so_and_waiting_has_its_outer_name(tmp_path):
    process = start(
        tmp_path,
        """
        import marey, queue, threading, time
        def get(): queue.Queue().get()
        threading.Thread(target=get, name='loader', daemon=True).start()
        def step(number): time.sleep(0.001 if number < 9 else 600)
        for number in range(10):
            with marey.record_function(f'Step#{number}'): step(number)
        """,
    )
    try:
        tables = seen(tmp_path, "x.marey", until=is_open("Step#9"))
        (step,) = [row for row in tables["now_ranges"] if row["name"] == "Step#9"]
        assert 1_000_000 <= step["usual_ns"] < 600_000_000_000
        assert any(row["is_waiting"] and row["name"].endswith("Queue.get") for row in tables["now_ranges"])
        time.sleep(0.5)  # longer than usual, even here
        text = marey_command("now", "x.marey", folder=tmp_path).stdout
        assert re.search(r"^  loader +waiting: queue\.py\(\d+\): Queue\.get [\d.]+ \w+  <  \S+: get\n", text, re.M)
        assert re.search(r"\bstep [\d.]+ m?s \(usually [\d.]+ ms\)  <  Step#9 [\d.]+ m?s \(usually", text)
    finally:
        end(process)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_program_of_another_user_runs():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        process = start(folder, "import time\ndef rest(): time.sleep(600)\nrest()\n")
        try:
            seen(folder, "x.marey", until=is_open("rest"))
            (folder / "x.marey").chmod(0o644)
            words = [os.environ["MAREY_BUILD_DIR"] + "/marey", "now", "--json", "x.marey"]
            try:
                done = subprocess.run(words, cwd=folder, user=65534, capture_output=True, text=True, timeout=60)
            except PermissionError:
                pytest.skip("nobody cannot execute what was built here")
            (row,) = json.loads(done.stdout)["now_processes"]
            assert row["state"] == "running", done
        finally:
            end(process)


def test_a_killed_program_says_how_it_ended_and_in_which_range(tmp_path):
    text = "import os\ndef f(): os.kill(os.getpid(), 9)\nf()\n"
    assert start(tmp_path, text).wait(timeout=60) != 0
    tables = json.loads(marey_command("now", "--json", "x.marey", folder=tmp_path).stdout)
    (row,) = tables["now_processes"]
    assert (row["state"], row["exit_signal"], row["exit_code"]) == ("killed", signal.SIGKILL, None)
    text = marey_command("now", "x.marey", folder=tmp_path).stdout
    assert re.match(r"x\.py \d+, killed by SIGKILL [\d.]+ m?s ago\n  \S+ +(posix\.kill [^<]*<  )?\S+: f ", text), text


LONG_KERNEL = 'device.marey_simulated_launch(0, 1, b"long_kernel", ctypes.c_uint64(10**12)); os.kill(os.getpid(), 9)'


@pytest.mark.parametrize(
    ("last", "state"), (("pass", "idle for [^ ]+ [mu]?s after"), (LONG_KERNEL, "reported until [^ ]+ [mu]?s ago:"))
)
def test_a_device_is_idle_only_if_all_work_was_reported(tmp_path, last, state):
    library = BUILD / "tests" / "libmarey_simulated.so"
    text = f"""
    import ctypes, os, time
    device = ctypes.CDLL({str(library)!r})
    device.marey_simulated_configure(b"buffer_records", ctypes.c_double(1))
    for _ in range(4): device.marey_simulated_launch(0, 1, b"quick_kernel", ctypes.c_uint64(1000))
    {last}
    """
    start(tmp_path, text, "--gpu=simulated", LD_LIBRARY_PATH=str(library.parent)).wait(timeout=60)
    text = marey_command("now", "x.marey", folder=tmp_path).stdout
    assert re.search(rf"^  other 0  {state} quick_kernel$", text, re.M), text
    assert ("has not ended, or was not reported yet" in text) == (last == LONG_KERNEL), text


def test_a_rank_that_is_missing_in_a_collective_is_named(tmp_path):
    text = """
        import marey, os, time
        def load_batch(): time.sleep(600)
        for _ in range(5):
            with marey.record_function('gloo:all_reduce'): time.sleep(0.01)
        if os.environ['RANK'] == '1': load_batch()
        with marey.record_function('gloo:all_reduce'): time.sleep(600)
    """
    ranks = [start(tmp_path, text, name=f"rank{rank}", RANK=str(rank), WORLD_SIZE="3") for rank in range(3)]
    try:
        for _ in range(400):
            done = marey_command("now", ".", folder=tmp_path)
            if done.stdout.startswith("hang: "):
                break
            time.sleep(0.05)
        found = r"hang: all_reduce #5: ranks 0, 2 wait [\d.]+ m?s; rank 1 is missing, in load_batch for [\d.]+ m?s\n"
        assert re.match(found, done.stdout), done.stdout + done.stderr
        assert len(re.findall(r"^rank\d.py \d+, rank \d of 3, recording for", done.stdout, re.M)) == 3
        rows = json.loads(marey_command("now", "--json", ".", folder=tmp_path).stdout)["now_processes"]
        compared = marey_command("ranks", *[str(row["pid"]) for row in rows], folder=tmp_path)
        assert re.match(found, compared.stdout), compared.stdout + compared.stderr
    finally:
        for rank in ranks:
            end(rank)


def test_a_rank_that_died_is_named_when_one_file_has_all_ranks(tmp_path):
    text = """
        import marey, os, subprocess, sys, time
        def die(): os.kill(os.getpid(), 9)
        if 'RANK' in os.environ:
            for _ in range(5):
                with marey.record_function('gloo:all_reduce'): time.sleep(0.01)
            if os.environ['RANK'] == '1': die()
        else:
            ranks = [{**os.environ, 'RANK': str(rank), 'WORLD_SIZE': '2'} for rank in range(2)]
            for process in [subprocess.Popen([sys.executable, __file__], env=rank) for rank in ranks]: process.wait()
    """
    start(tmp_path, text).wait(timeout=60)
    assert [path.name for path in tmp_path.glob("*.marey")] == ["x.marey"]
    done = marey_command("now", "x.marey", folder=tmp_path)
    assert done.stdout.startswith("died: rank 1 died of SIGKILL in die\n"), done.stdout + done.stderr


def test_tasks_that_wait_are_named_with_what_they_await(tmp_path):
    process = start(
        tmp_path,
        """
        import asyncio
        async def fetch(event): await event.wait()
        async def handle(event): await fetch(event)
        async def done(): await asyncio.sleep(0)
        async def main():
            event = asyncio.Event()
            tasks = [asyncio.create_task(handle(event), name="request 7"), asyncio.create_task(done(), name="short")]
            await asyncio.gather(*tasks)
        asyncio.run(main())
        """,
    )
    try:
        tables = seen(tmp_path, "x.marey", until=lambda tables: len(tables["now_tasks"]) >= 2)
        tasks = {row["task"]: row for row in tables["now_tasks"]}
        assert "short" not in tasks
        assert re.search(r"\bhandle$", tasks["request 7"]["coroutine"])
        assert re.search(r"\bEvent.wait$", tasks["request 7"]["awaits"]) and tasks["request 7"]["suspended_ns"] > 0
        text = marey_command("now", "x.marey", folder=tmp_path).stdout
        assert re.search(
            r"^  request 7 waits: asyncio/locks.py\(\d+\): Event.wait [\d.]+ \w+  <  \S+: handle\n", text, re.M
        )
    finally:
        end(process)


def test_the_open_ranges_are_a_table_in_sql(tmp_path):
    assert start(tmp_path, "import os\ndef f(): os.kill(os.getpid(), 9)\nf()\n").wait(timeout=60) != 0
    query = "select name from now_ranges where name like '%: f'"
    done = marey_command("sql", "--csv", "x.marey", query, folder=tmp_path)
    assert done.stdout == '"name"\n"x.py(2): f"\n', done.stderr


def test_sql_reads_the_capture_of_a_running_process(tmp_path):
    process = start(tmp_path, "import time\ndef f(): time.sleep(600)\nf()\n")
    try:
        (row,) = seen(tmp_path, "x.marey", until=is_open("f"))["now_processes"]
        query = "select name from now_ranges where name like '%: f'"
        done = marey_command("sql", "--csv", str(row["pid"]), query, folder=tmp_path)
        assert done.stdout == '"name"\n"x.py(2): f"\n', done.stderr
    finally:
        end(process)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["999999999"], "process 999999999: No such process"),
        (["nothing.marey"], "nothing.marey: No such file or directory"),
        (["--all", "x.marey"], "now: --all and x.marey are mutually exclusive"),
    ],
)
def test_what_cannot_be_looked_at_is_an_error(tmp_path, arguments, error):
    done = marey_command("now", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"marey: {error}\n")


def test_a_process_that_is_not_recorded_has_no_calls_to_report(tmp_path):
    done = marey_command("tree", str(os.getpid()), folder=tmp_path)
    error = f"process {os.getpid()}: is not being recorded (marey ps lists those that are)"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"marey: {error}\n")


def test_files_that_are_no_captures_are_named_and_the_others_shown(tmp_path):
    assert start(tmp_path, "def f(): pass\nf()\n").wait(timeout=60) == 0
    (tmp_path / "y.marey").write_bytes(b"MAREYCAP" + bytes(100))
    (tmp_path / "z.marey").write_text("nothing")
    done = marey_command("now", ".", folder=tmp_path)
    assert done.returncode == 0 and re.search(r"\d+, finished [\d.]+ \w+ ago\n", done.stdout)
    assert [line.split(":")[3].strip().split("/")[-1] for line in done.stderr.splitlines()] == ["y.marey", "z.marey"]


def test_a_snapshot_has_the_last_part_and_the_open_ranges(tmp_path):
    process = start(
        tmp_path,
        """
        import marey, threading, time
        def late():
            while True:
                with marey.record_function('late'): time.sleep(0.01)
        for number in range(10):
            with marey.record_function(f'early {number}'): pass
        time.sleep(1.5)
        threading.Thread(target=late, daemon=True).start()
        with marey.record_function('open'): time.sleep(600)
        """,
    )
    try:
        seen(tmp_path, "x.marey", until=is_open("open"))
        done = marey_command("snapshot", "x.marey", "--last", "1s", "-o", "part.marey", folder=tmp_path)
        assert re.fullmatch(r"part\.marey: \d+ ranges, [\d.]+ (B|KiB)\n", done.stdout), done.stderr
        done = marey_command("snapshot", "x.marey", folder=tmp_path)
        assert done.stdout.startswith("x.snapshot.marey: "), done.stderr
        again = marey_command("snapshot", "x.marey", folder=tmp_path)
        refused = "marey: x.snapshot.marey: already exists (use --force to replace it)\n"
        assert (again.returncode, again.stderr) == (2, refused)
    finally:
        end(process)
    whole = marey_command("report", "--csv", "--columns", "name,count", "x.snapshot.marey", folder=tmp_path).stdout
    assert "\nopen,1\n" in whole, "the capture beside it is not added up with it"
    names = {name: set(marey.load(tmp_path / f"{name}.marey").to_pandas()["name"]) for name in ("part", "x.snapshot")}
    assert {"late", "open"} <= names["part"] and "early 3" not in names["part"]
    assert {"early 0", "early 9", "late", "open"} <= names["x.snapshot"]
    report = marey_command("report", "--csv", "--columns", "name,total", "part.marey", folder=tmp_path).stdout
    assert int(re.search(r"x\.py\(1\): <module>\"?,(\d+)", report)[1]) < 1_100_000_000, "cut where the part begins"


def test_top_shows_the_time_of_the_last_moment_and_ends_with_the_program(tmp_path):
    process = start(
        tmp_path,
        """
        import threading, time
        def early(): time.sleep(0.3)
        early()
        def spin():
            while True: tick()
        def tick(): pass
        threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()
        spin()
        """,
    )
    try:
        seen(tmp_path, "x.marey", until=is_open("spin"))
        done = marey_command("top", "x.marey", "--every", "100ms", "--count", "2", "--limit", "3", folder=tmp_path)
        assert done.stdout.count("1 process, 2 threads: ") == 2, done.stdout + done.stderr
        assert re.search(r" x\.py\(\d+\): tick\n", done.stdout) and "early" not in done.stdout
        shares = [float(share) for share in re.findall(r" ([\d.]+)%", done.stdout)]
        assert sum(shares) <= 201  # of two tables
        assert re.search(r"^waiting  [\d.]+ ms: (_thread\.lock\.acquire |threading\.py\(\d+\): )", done.stdout, re.M)
        watching = subprocess.Popen(
            [sys.executable, "-m", "marey", "top", "--every", "100ms", "x.marey"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watching.stdout.readline().startswith("1 process")
    finally:
        end(process)
    with watching:
        watching.stdout.read()
    assert watching.returncode == 0
    done = marey_command("top", "x.marey", "--every", "1us", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "marey: top: --every 1us is less than 50ms\n")
    done = marey_command("top", "x.marey", "--every", "50ms", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "marey: top: no program that is being recorded\n")


def test_a_snapshot_keeps_the_parts_of_calls_together(tmp_path):
    process = start(
        tmp_path,
        """
        import time
        def rows():
            while True: yield
        def read(rows): time.sleep(600)
        started = rows()
        for _ in range(5000): next(started)
        time.sleep(6)
        for _ in range(100): next(started)
        read(started)
        """,
    )
    try:
        seen(tmp_path, "x.marey", until=is_open("read"))
        assert marey_command("snapshot", "x.marey", "--last", "5s", folder=tmp_path).returncode == 0
    finally:
        end(process)
    frame = marey.load(tmp_path / "x.snapshot.marey").to_pandas()
    counts = frame["name"].map(lambda name: name.rpartition(": ")[2]).value_counts()
    assert counts["rows"] == 100 and counts["read"] == 1
