"""Programs that consist of several processes under `marey run`, as one trace on one clock."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from running import captures, environment, plain, recorded, write

import marey

MERGED = ["-q", "-o", "x.marey"]
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
    assert "20 other processes" in errors and "21 processes in one file" in errors
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
    assert "16 processes in one file" in done.stderr
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


def test_workers_that_are_ended_by_their_parent_have_not_crashed(tmp_path):
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
    assert "ended_by_parent" in codes and "crashed" not in codes
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


def test_tokens_are_checked():
    with pytest.raises(ValueError, match="expected the 24 bytes"):
        marey.receive_token(b"short")
    assert len(marey.send_token()) == 24
