"""Programs that consist of several processes under `marey run`, as one trace on one clock."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from running import captures, environment, functions, move_to_host, plain, recorded, write

import marey

MERGED = ["-q", "-o", "x.marey"]
COMMAND = os.path.join(os.environ.get("MAREY_BUILD_DIR", ""), "marey")
TREE_PROGRAM = os.path.join(os.environ.get("MAREY_BUILD_DIR", ""), "tests", "tree_program")


def run(command, folder, *options):
    """Run a program that is not Python, with its output."""
    words = [sys.executable, "-m", "marey", "run", *options, "--", *command]
    return subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)


def processes(trace):
    return trace.tables["processes"].to_pandas().to_dict("records")


def links(trace, name):
    """Return (range, its process) for both ends of the links with a name."""
    ranges = trace.tables["ranges"].to_pandas()
    found = trace.tables["links"].to_pandas()
    sites = trace.tables["sites"].to_pandas()["name"]
    threads = trace.tables["threads"].to_pandas()["process"]
    tracks = trace.tables["tracks"].to_pandas()

    def end(row):
        track = tracks[(tracks.first_range <= row) & (row < tracks.first_range + tracks.range_count)].iloc[0]
        return sites[ranges.site[row]].rpartition("): ")[2], int(threads[track.thread])

    return [(end(each["from"]), end(each.to)) for _, each in found.iterrows() if each["name"] == name]


def test_a_run_with_children_is_one_file(tmp_path):
    script = write(
        tmp_path,
        """
        import multiprocessing, subprocess, sys
        def work(n): return n
        def spawn(): subprocess.run([sys.executable, '-c', 'def by_command(): pass\\nby_command()'])
        if __name__ == '__main__':
            process = multiprocessing.get_context('fork').Process(target=work, args=(1,))
            process.start(); process.join()
            spawn()
        """,
    )
    assert recorded([script], tmp_path, run_options=MERGED) == plain([script], tmp_path)
    (capture,) = captures(tmp_path)
    trace = marey.load(capture)
    main, forked, spawned = sorted(processes(trace), key=lambda process: process["start"])
    assert [main["origin"], forked["origin"], spawned["origin"]] == ["spawn", "fork", "spawn"]
    assert main["exit_code"] == 0 and len(main["tree"]) == 32
    assert main["tree"] == forked["tree"] == spawned["tree"] and main["clock"] == spawned["clock"]
    assert [process["parent"] for process in (forked, spawned)] == [0, 0]
    assert trace.problems == []
    starts = {child: parent for (parent, _), (child, _) in links(trace, "spawn")}
    assert len(starts) == 2


def test_the_summary_of_many_children_is_a_table(tmp_path):
    script = write(
        tmp_path,
        """
        import os
        def work(): pass
        for _ in range(20):
            if os.fork() == 0:
                work()
                os._exit(0)
            os.wait()
        """,
    )
    _, errors, _ = recorded([script], tmp_path, run_options=["-o", "x.marey"])
    assert "of the first recorded process" not in errors  # it is the program
    assert "20 other processes" in errors and re.search(r"x.marey: 21 processes, [\d,]+ ranges in ", errors)
    assert errors.count("program.py") < 10
    assert len(captures(tmp_path)) == 1


@pytest.mark.skipif(not os.path.exists(TREE_PROGRAM), reason="needs tree_program")
def test_a_shell_script_with_python_and_cpp_children(tmp_path):
    write(tmp_path, "def f(): print('python')\nf()\n", "part.py")
    write(
        tmp_path,
        f"""
        {sys.executable} part.py &
        {TREE_PROGRAM} fork 2 10
        ({TREE_PROGRAM} spawn 1 5; {sys.executable} part.py)
        wait
        exit 3
        """,
        "job.sh",
    )
    done = run(["sh", "job.sh"], tmp_path, "-q", "-o", "job.marey")
    assert (done.returncode, done.stdout, done.stderr) == (3, "python\npython\n", "")
    trace = marey.load(tmp_path / "job.marey")
    found = processes(trace)
    assert len(found) == 7
    assert (trace.to_pandas()["name"] == "work").sum() == 25
    # The shells are not recorded, so that their four children have no parent in the trace.
    assert sorted(process["origin"] for process in found) == ["fork"] * 2 + ["spawn"] * 5
    assert trace.tables["processes"].to_pandas()["parent"].isna().sum() == 4


@pytest.mark.skipif(not os.path.exists(TREE_PROGRAM) or not shutil.which("make"), reason="needs make")
def test_make_in_parallel(tmp_path):
    write(
        tmp_path,
        f"""
        all: $(foreach i,1 2 3 4 5 6 7 8,part$(i))
        part%:
        \t@{TREE_PROGRAM} fork 1 10
        """,
        "Makefile",
    )
    done = run(["make", "-s", "-j4"], tmp_path, "-o", "job.marey")
    assert done.returncode == 0 and done.stdout == ""
    assert re.search(r"^of the first recorded process, tree_program \(\d+\):$", done.stderr, re.M)
    assert re.search(r": 16 processes, [\d,]+ ranges in ", done.stderr)
    trace = marey.load(tmp_path / "job.marey")
    assert len(processes(trace)) == 16
    assert len(links(trace, "spawn")) == 8
    for (parent, parent_process), (child, child_process) in links(trace, "spawn"):
        assert (parent, child) == ("parent", "child")
        assert processes(trace)[child_process]["parent"] == parent_process


@pytest.mark.skipif(not os.path.exists(TREE_PROGRAM), reason="needs tree_program")
def test_messages_arrive_after_they_were_sent(tmp_path):
    assert run([TREE_PROGRAM, "messages", "500"], tmp_path, "-q", "-o", "x.marey").returncode == 0
    trace = marey.load(tmp_path / "x.marey")
    messages = trace.tables["messages"].to_pandas()
    sent = messages[~messages.is_received].set_index(["sender", "number"]).time_ns
    received = messages[messages.is_received].set_index(["sender", "number"]).time_ns
    assert len(sent) == len(received) == 1000
    assert ((received - sent) > 0).all()
    found = links(trace, "message")
    assert len(found) == 1000
    assert {(a, b) for (a, _), (b, _) in found} == {("send", "receive")}


POOL = """
    import multiprocessing, os, signal, sys
    from concurrent.futures import ProcessPoolExecutor
    def square(n): return n * n
    def by_queue(queue, results):
        for item in iter(queue.get, None): results.put(square(item))
    if __name__ == '__main__':
        context = multiprocessing.get_context(sys.argv[1])
        with context.Pool(2) as pool: print(pool.map(square, range(4)))
        with ProcessPoolExecutor(2, mp_context=context) as pool: print(list(pool.map(square, range(4))))
        queue, results = context.Queue(), context.SimpleQueue()
        process = context.Process(target=by_queue, args=(queue, results))
        process.start()
        for item in (5, 6, None): queue.put(item)
        print(results.get(), results.get())
        process.join()
        try:
            results.put(lambda: 0)
        except Exception as error:
            print(type(error).__name__)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_queues_and_pools_have_links_and_behave_the_same(tmp_path, method):
    script = write(tmp_path, POOL)
    assert recorded([script, method], tmp_path, run_options=MERGED) == plain([script, method], tmp_path)
    trace = marey.load(tmp_path / "x.marey")
    found = links(trace, "message")
    assert len({frozenset((a, b)) for (_, a), (_, b) in found if a != b}) >= 3
    messages = trace.tables["messages"].to_pandas()
    sent = messages[~messages.is_received].set_index(["sender", "number"]).time_ns
    received = messages[messages.is_received].set_index(["sender", "number"]).time_ns
    assert ((received - sent).dropna() > 0).all()


def test_a_pickle_with_a_token_needs_no_marey(tmp_path):
    script = write(
        tmp_path,
        """
        import multiprocessing.connection, subprocess, sys
        from multiprocessing.reduction import ForkingPickler
        data = bytes(ForkingPickler.dumps({"answer": 42}))
        assert b"marey token " in data, data
        code = "import pickle, sys; print(pickle.load(sys.stdin.buffer), 'marey' in sys.modules)"
        print(subprocess.run([sys.executable, "-I", "-c", code], input=data, capture_output=True).stdout.decode())
        """,
    )
    out, errors, code = recorded([script], tmp_path, run_options=MERGED)
    assert (out, errors, code) == ("{'answer': 42} False\n\n", "", 0)


def test_workers_that_are_ended_by_their_parent_are_named(tmp_path):
    script = write(
        tmp_path,
        """
        import multiprocessing, time
        def square(n): return n * n
        def wait(ready):
            ready.set()
            time.sleep(600)
        if __name__ == '__main__':
            context = multiprocessing.get_context('fork')
            with context.Pool(2) as pool: print(pool.map(square, range(6)))
            ready = context.Event()
            process = context.Process(target=wait, args=(ready,))
            process.start(); ready.wait()
            process.kill(); process.join()
            print(process.exitcode)
        """,
    )
    assert recorded([script], tmp_path, run_options=MERGED) == plain([script], tmp_path)
    trace = marey.load(tmp_path / "x.marey")
    codes = [code for code, _, _ in trace.problems]
    assert "process_killed" in codes and "crashed" not in codes
    assert len(processes(trace)) >= 3


def test_the_captures_stay_when_marey_is_killed(tmp_path):
    script = write(
        tmp_path,
        """
        import os, signal, sys
        def child(): pass
        if os.fork() == 0:
            child()
            sys.exit()
        os.wait()
        os.kill(os.getppid(), signal.SIGKILL)
        """,
    )
    command = [sys.executable, "-m", "marey", "run", *MERGED, script]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), start_new_session=True)
    assert process.wait(timeout=60) == -signal.SIGKILL
    found = captures(tmp_path)
    assert len(found) == 2
    info = [sys.executable, "-m", "marey", "info", "--json", str(found[1])]
    done = subprocess.run(info, env=environment(), capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["processes"]) == 2


# Waits until marey run has packed its child; then ends, or kills marey run.
PACKED = """
    import os, signal, sys, time
    def child(): pass
    def parent(): pass
    if os.fork() == 0:
        child()
        sys.exit()
    os.wait()
    for _ in range(1500):
        if os.path.exists('x.packed.marey') and sum(name.endswith('.marey') for name in os.listdir()) == 2: break
        time.sleep(0.05)
    else: sys.exit('its child was not packed')
    parent()
    if sys.argv[1] == 'kill': os.kill(os.getppid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["normal", "kill"])
def test_processes_that_have_ended_are_packed_while_the_program_runs(tmp_path, end):
    command = [sys.executable, "-m", "marey", "run", *MERGED, write(tmp_path, PACKED), end]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), start_new_session=True)
    assert process.wait(timeout=100) == (0 if end == "normal" else -signal.SIGKILL)
    found = [path.name for path in captures(tmp_path)]
    assert found == (["x.marey"] if end == "normal" else ["x.marey", "x.packed.marey"])
    for name in found:  # each of them stands for the run
        info = [sys.executable, "-m", "marey", "info", "--json", name]
        done = subprocess.run(info, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
        assert len(json.loads(done.stdout)["processes"]) == 2
    names = marey.load([tmp_path / name for name in found]).to_pandas()["name"]
    for name in ("child", "parent"):
        assert sum(each.endswith(f"): {name}") for each in names) == 1


def test_a_large_capture_of_a_child_is_packed_when_the_program_has_ended(tmp_path):
    script = write(
        tmp_path,
        """
        import glob, os, sys, time
        def call(): pass
        def large():
            for _ in range(5_000_000): call()
        def small(): pass
        for child in (large, small):
            if os.fork() == 0:
                child()
                sys.exit()
            os.wait()
        for _ in range(1500):  # the earlier child first, if it were packed at all
            if os.path.exists('x.packed.marey') and len(glob.glob('x.[0-9]*')) < 2: break
            time.sleep(0.05)
        print([os.path.getsize(each) > 64 << 20 for each in glob.glob('x.[0-9]*')])
        """,
    )
    output, _, code = recorded([script], tmp_path, run_options=MERGED)
    assert (code, output) == (0, "[True]\n")
    assert [path.name for path in captures(tmp_path)] == ["x.marey"]
    assert {"call": 5_000_000, "small": 1}.items() <= functions(tmp_path / "x.marey").items()


def test_a_packed_process_is_in_the_summary_and_so_is_one_that_was_not_recorded(tmp_path):
    script = write(
        tmp_path,
        """
        import os, subprocess, sys, time
        def child(): pass
        other = subprocess.Popen(['sleep', '1000'], env={})
        if os.fork() == 0:
            for _ in range(400_000): child()  # takes a while to pack
            sys.exit()
        os.wait()
        for _ in range(1500):  # it looks at processes before it packs
            if os.path.exists('x.packed.marey'): break
            time.sleep(0.05)
        other.kill()
        other.wait()
        subprocess.run([sys.executable, '-S', '-c', 'import time; time.sleep(1.5)'], env={})
        """,
    )
    _, errors, code = recorded([script], tmp_path, run_options=["-o", "x.marey"])
    assert code == 0 and "1 other process\n" in errors
    assert re.search(r"x.marey: 2 processes, [\d,]+ ranges in ", errors)
    assert re.search(r"^not recorded: at least 2 processes \(python\S*, sleep\): ", errors, re.M)
    assert len(captures(tmp_path)) == 1


def test_several_captures_are_loaded_as_one_trace(tmp_path):
    script = write(tmp_path, "import os\ndef f(): pass\nf()\nif os.fork(): os.wait()\nf()\n")
    recorded([script], tmp_path, run_options=["--keep-captures", *MERGED])
    paths = captures(tmp_path)
    assert len(paths) == 2
    trace = marey.load(paths)
    assert len(processes(trace)) == 2
    merged = marey.merge_traces([marey.load(path) for path in reversed(paths)])
    assert len(processes(merged)) == 2 and len(merged) == len(trace)
    with pytest.raises(marey.Error, match="apply to a single file"):
        marey.load(paths, session=1)


def test_captures_of_two_hosts_are_put_on_one_clock(tmp_path):
    script = write(
        tmp_path,
        """
        import os, socket, sys
        from marey import _marey  # private: the clock exchange of MPI, without MPI
        def asking(): pass
        def answering(): pass
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            theirs.close()
            for _ in range(4): _marey.ask_clock(ours.fileno())
            asking()
            sys.exit()
        ours.close()
        while _marey.answer_clock(theirs.fileno()): pass
        answering()
        os.wait()
        """,
    )
    recorded([script], tmp_path, run_options=["--keep-captures", *MERGED])
    answering, asking = captures(tmp_path)
    together = marey.load([answering, asking])
    move_to_host(asking, "elsewhere")
    command = [sys.executable, "-m", "marey", "merge", "-o", "all.marey", answering.name, asking.name]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert "clock     2 hosts, reference" in done.stdout and "(elsewhere: 32 exchanges)" in done.stdout
    assert done.stderr == ""
    trace = marey.load(tmp_path / "all.marey")
    assert trace.problems == [] and len(trace) == len(together)
    clocks = {row["host"]: row for row in trace.tables["clocks"].to_pandas().to_dict("records")}
    fitted = clocks["elsewhere"]
    assert fitted["method"] == "exchange"
    # Both captures are on one real clock: nothing moves by more than the error.
    assert abs(fitted["offset_ns"]) <= fitted["error_ns"] < 10_000_000
    for format, place in (("chrome", "otherData"), ("perfetto", None)):
        export = [sys.executable, "-m", "marey", "export", "--to", format, "-o", f"all.{format}", "all.marey"]
        subprocess.run(export, cwd=tmp_path, env=environment(), check=True, capture_output=True)
        data = (tmp_path / f"all.{format}").read_bytes()
        if place:
            assert json.loads(data)[place]["clocks"][1]["error_ns"] == fitted["error_ns"]
        else:
            assert b"marey.host_clocks" in data and str(fitted["error_ns"]).encode() in data

    move_to_host(answering, "third")  # the exchanges name a host that is not there
    done = subprocess.run([*command, "--force"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "clock     2 hosts, reference third: worst unknown error (elsewhere)" in done.stdout
    assert "placed by their wall clocks, with an unknown error: elsewhere." in done.stderr


def test_a_pool_that_is_killed_keeps_what_it_recorded(tmp_path):
    script = write(
        tmp_path,
        """
        import concurrent.futures, multiprocessing, os, signal
        def square(n): return n * n
        def die(): os.kill(os.getpid(), signal.SIGKILL)
        if __name__ == '__main__':
            with concurrent.futures.ProcessPoolExecutor(3, multiprocessing.get_context('fork')) as pool:
                print(list(pool.map(square, range(9))))
                try: pool.submit(die).result()
                except concurrent.futures.process.BrokenProcessPool: print('broken')
        """,
    )
    assert recorded([script], tmp_path, run_options=MERGED) == plain([script], tmp_path)
    (capture,) = captures(tmp_path)
    trace = marey.load(capture)
    names = trace.tables["sites"].to_pandas()["name"][trace.tables["ranges"].to_pandas().site]
    assert sum(name.endswith("): square") for name in names) == 9
    assert sum(name.endswith("): die") for name in names) == 1
    codes = [code for code, _, _ in trace.problems]
    assert "process_killed" in codes and "crashed" not in codes


def test_a_daemon_that_outlives_the_run_keeps_its_capture(tmp_path):
    script = write(
        tmp_path,
        """
        import os, sys
        def work(): pass
        work()
        ready, begin = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                work()
                os.write(begin, b'x')
                for file in (0, 1, 2): os.close(file)
                with open('wait') as fifo: fifo.read()
                sys.exit()
            os._exit(0)
        os.wait()
        os.read(ready, 1)
        """,
    )
    os.mkfifo(tmp_path / "wait")
    assert recorded([script], tmp_path, run_options=MERGED)[2] == 0
    running = [path for path in captures(tmp_path) if path.name != "x.marey"]
    assert running and len(processes(marey.load(captures(tmp_path)))) >= 2
    with open(tmp_path / "wait", "w"):
        pass


def test_the_first_process_may_outlive_the_run(tmp_path):
    script = write(
        tmp_path,
        """
        import os
        def work(): pass
        work()
        with open('pid.new', 'w') as file: file.write(str(os.getpid()))
        os.rename('pid.new', 'pid')
        with open('wait') as fifo: fifo.read()
        """,
    )
    os.mkfifo(tmp_path / "wait")
    python = f"{sys.executable} {script} >/dev/null 2>&1 &"
    done = run(
        ["sh", "-c", f"{python} until [ -e pid ]; do sleep 0.1; done; {TREE_PROGRAM} fork 1 5"], tmp_path, *MERGED
    )
    assert done.returncode == 0 and done.stderr == ""
    pid = (tmp_path / "pid").read_text()
    os.kill(int(pid), signal.SIGKILL)
    assert [path.name for path in captures(tmp_path)] == ["x.marey", f"x.{pid}.marey"]
    names = list(marey.load(captures(tmp_path)).to_pandas()["name"])
    assert names.count("work") == 5 and sum(name.endswith("): work") for name in names) == 1


# Records in children, waits until marey run has tried to pack them, and ends.
TRIED = f"""
    touch started; until [ -e go ]; do sleep 0.05; done
    {TREE_PROGRAM} fork 6 50
    [ "$1" = limit ] || cat /dev/zero >filler 2>/dev/null
    until [ -e x.packed.marey ]; do sleep 0.05; done
    sleep 0.5
    [ "$1" != "filled for a while" ] || rm filler
    exit 3
"""


@pytest.mark.parametrize("disk", ["limit", "filled", "filled for a while"])
def test_a_full_disk_while_packing_loses_nothing(tmp_path, disk):
    command = [COMMAND, "run", "-o", "x.marey", "--", "sh", "-c", TRIED, "sh", disk]
    if disk == "limit":
        folder = tmp_path
    else:
        folder = tmp_path / "small"
        folder.mkdir()
        mount = ["unshare", "--mount", "sh", "-c"]
        small = "mount -t tmpfs -o size=4m small small && touch small/go && cd small"
        if subprocess.run([*mount, small], cwd=tmp_path, capture_output=True, check=False).returncode != 0:
            pytest.skip("mounting is not allowed here")
        command = [*mount, small + ' && "$@"; code=$?; cp *.marey ..; exit $code', "sh", *command]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    if disk == "limit":
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.05)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        (tmp_path / "go").touch()
    errors = process.communicate(timeout=100)[1]
    assert process.returncode == 3
    names = list(marey.load(captures(tmp_path)).to_pandas()["name"])
    assert names.count("work") == 300 and names.count("parent") == 7
    reason = {"limit": "File too large", "filled": "No space left on device"}.get(disk)
    failed = f"marey: the captures of this run stay as they are: x.marey: cannot write: {reason}\n" in errors
    assert failed == (reason is not None)
    assert (
        len(captures(tmp_path)) == 1 if reason is None else (tmp_path / "x.packed.marey").exists() == (disk == "limit")
    )


def test_files_that_cannot_be_merged_are_named(tmp_path):
    script = write(tmp_path, "import os\ndef f(): pass\nf()\nif os.fork(): os.wait()\nf()\n")
    recorded([script], tmp_path, run_options=["--keep-captures", *MERGED])
    first, second = captures(tmp_path)
    (tmp_path / "cut.marey").write_bytes(first.read_bytes()[:100])
    newer = bytearray(first.read_bytes())
    newer[8] = 99
    (tmp_path / "newer.marey").write_bytes(newer)
    command = [sys.executable, "-m", "marey", "merge", "-o", "all.out", first.name, second.name, first.name]
    done = subprocess.run(
        [*command, "cut.marey", "newer.marey"], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0
    assert f"left out {first.name}: given twice" in done.stderr
    assert "left out cut.marey: " in done.stderr
    assert "left out newer.marey: written by a newer Marey (format 99)" in done.stderr
    assert done.stdout.startswith("all.out: 2 processes, ")


def test_tokens_are_checked():
    with pytest.raises(ValueError, match="expected the 24 bytes"):
        marey.receive_token(b"short")
    assert len(marey.send_token()) == 24
