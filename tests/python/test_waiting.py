"""Tables of functions: those that only wait have a line of their own, and all processes of a run are one table."""

import re
import subprocess
import sys

import pytest
from running import environment, recorded, write

WAITS = """
    import queue, threading, time

    tasks = queue.Queue()

    def work(n):
        return sum(i * i for i in range(20_000 + n))

    def serve():
        while (n := tasks.get()) is not None:
            work(n)

    threads = [threading.Thread(target=serve) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(50):
        tasks.put(n)
    done = threading.Event()
    done.wait(0.05)
    for _ in threads:
        tasks.put(None)
    for thread in threads:
        thread.join()
"""


def output(*words):
    command = [sys.executable, "-m", "marey", *map(str, words)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


def table(text):
    """The rows of the first table: (calls, function)."""
    lines = text.split("  function\n")[1].split("\n\n")[0].splitlines()
    found = [re.fullmatch(r" *[\d.]+ \w+ +<?[\d.]+% +[\d.]+ \w+ +([\d,]+) +[\d.]+ \w+  (.*)", line) for line in lines]
    return [(int(row[1].replace(",", "")), row[2]) for row in found if row]


@pytest.fixture(scope="module")
def waits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("waits")
    _, summary, code = recorded([write(folder, WAITS)], folder, run_options=["-o", "x.marey"])
    assert code == 0
    return folder / "x.marey", summary


WAITING = r"Condition\.wait|lock\.acquire|Thread\.join|_wait_for_tstate_lock|Event\.wait"


def test_functions_that_only_wait_are_not_in_the_table_but_below(waits):
    capture, summary = waits
    for text, command in ((summary, "marey report --all"), (output("report", capture), "--all")):
        functions = " ".join(name for _, name in table(text))
        assert "work" in functions and not re.search(WAITING, functions)
        assert re.search(rf"^waiting +[\d.]+ \w+: .*(?:{WAITING}).* \({command} adds them to the table\)$", text, re.M)


def test_everything_can_be_shown(waits):
    capture, _ = waits
    everything = output("report", capture, "--all")
    assert re.search(WAITING, " ".join(name for _, name in table(everything)))
    assert not re.search("^waiting ", everything, re.M)
    for options in (["--csv"], ["--json"], ["--layout=torch"], ["--filter=wait"], ["--list"]):
        assert re.search(WAITING, output("report", capture, *options)), options


def test_shares_refer_to_the_table(waits):
    shares = re.findall(r" (<?)([\d.]+)% ", output("report", waits[0], "--limit=0").split("\nwaiting")[0])
    total = sum(float(share) / (2 if is_less else 1) for is_less, share in shares)  # "<0.1%" is 0.05 on average
    assert total == pytest.approx(100, abs=len(shares) * 0.05)


def test_a_function_of_the_program_is_never_taken_for_a_known_one(tmp_path):
    write(tmp_path, "class Queue:\n    def get(self):\n        return sum(range(100_000))\n", "queue.py")
    write(tmp_path, "import queue\nqueue.Queue().get()\n")
    _, summary, _ = recorded(["program.py"], tmp_path, run_options=["-o", "x.marey"])
    assert "queue.py(2): Queue.get" in [name for _, name in table(summary)]


def test_the_first_table_has_the_calls_of_all_processes(tmp_path):
    program = """
        import multiprocessing

        def work(n):
            for i in range(30_000):
                n += i * i

        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                pool.map(work, range(40), chunksize=1)
                pool.close()
                pool.join()
    """
    _, summary, code = recorded([write(tmp_path, program)], tmp_path, run_options=["-o", "x.marey"])
    assert code == 0 and re.search(r"^marey: x\.marey: [\d,]+ calls of 3 processes in ", summary, re.M)
    assert (40, "program.py(3): work") in table(summary)
    assert not re.search(WAITING + r"|SimpleQueue\.get|Connection\._recv", " ".join(name for _, name in table(summary)))


def test_imports_can_be_left_out(tmp_path):
    write(tmp_path, "import helper\ndef own(): pass\nown()\n")
    write(tmp_path, "import colorsys\ndef inside(): pass\ninside()\n", "helper.py")
    recorded(["program.py"], tmp_path, run_options=["-q", "-o", "x.marey"])
    names = [name for _, name in table(output("report", tmp_path / "x.marey", "--limit=0"))]
    assert {"import helper", "import colorsys", "helper.py(2): inside"} <= set(names)
    text = output("report", tmp_path / "x.marey", "--limit=0", "--no-imports")
    names = [name for _, name in table(text)]
    assert "program.py(2): own" in names and "helper.py(2): inside" not in names
    assert not [name for name in names if name.startswith("import ")] and "\nimports " not in text
    refused = subprocess.run(
        [sys.executable, "-m", "marey", "report", "--no-imports", "--show-importlib", str(tmp_path / "x.marey")],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 2 and "--no-imports and --show-importlib are mutually exclusive" in refused.stderr
