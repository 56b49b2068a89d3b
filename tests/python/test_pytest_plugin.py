"""The pytest plugin: real runs of pytest in other processes, with xdist and other plugins."""

import importlib.util
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from conftest import SOURCE
from range_rows import range_rows

import marey

pytest_plugins = ["pytester"]


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on a test module, with no plugins but this one and those named by `-p`; return its result."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(text, *options):
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_subprocess("-p", "marey_pytest", *options, timeout=120)

    return run


def paths(trace):
    """The names of the marked ranges, each with those of the marked ranges around it, as "a > b > c"."""
    rows = range_rows(trace)
    found = []
    for row in rows:
        if row["scope"] != 7:
            continue
        names = []
        at = row
        while at is not None:
            if at["scope"] == 7:
                names.append(at["name"])
            at = None if at["parent"] is None else rows[at["parent"]]
        found.append(" > ".join(reversed(names)))
    return found


SUITE = """
import json, pytest

@pytest.fixture(scope="module")
def shop():
    yield json.dumps({"a": 1})
    json.dumps([])

@pytest.fixture
def cart(shop):
    return json.loads(shop)

def work(n):
    return sum(i * i for i in range(n))

def test_slow(cart):
    assert work(300_000) and cart == {"a": 1}

def test_quick():
    pass
"""


def test_the_report_shows_the_slowest_test_first_and_where_its_time_went(run):
    result = run(SUITE, "--marey")
    result.assert_outcomes(passed=2)
    text = result.stdout.str()
    section = text[text.index("slowest tests (marey)") :]
    assert section.index("test_it.py::test_slow") < section.index("test_it.py::test_quick")
    result.stdout.re_match_lines_random(
        [r" *[\d.]+ \w+  test_it.py::test_slow  \(setup .*, call .*, teardown .*\)", r".*test_it.py\(\d+\): work.*"]
    )
    result.stdout.fnmatch_lines("2 tests, *ranges")


def test_each_test_is_a_range_with_its_phases_and_fixtures_inside(run, pytester):
    run(SUITE, "--marey-out", "out", "--marey-no-calls").assert_outcomes(passed=2)
    slow, quick = "test test_it.py::test_slow", "test test_it.py::test_quick"
    assert paths(marey.load(pytester.path / "out" / "pytest.marey")) == [
        "collection",
        slow,
        f"{slow} > setup",
        f"{slow} > setup > fixture shop",
        f"{slow} > setup > fixture cart",
        f"{slow} > call",
        f"{slow} > teardown",
        f"{slow} > teardown > fixture cart (teardown)",
        quick,
        f"{quick} > setup",
        f"{quick} > call",
        f"{quick} > teardown",
        f"{quick} > teardown > fixture shop (teardown)",
    ]


def test_a_run_without_an_option_imports_nothing_of_the_package_and_prints_nothing(run):
    result = run(
        "import sys\n"
        "def test_it():\n"
        "    assert 'marey_pytest' in sys.modules\n"
        "    assert [name for name in sys.modules if name.split('.')[0] == 'marey'] == []\n",
        "--strict-markers",
    )
    result.assert_outcomes(passed=1)
    assert "slowest" not in result.stdout.str()


# ---- limits


LIMITS = """
import sqlite3, pytest

def query(n):
    cursor = sqlite3.connect(":memory:").cursor()
    for _ in range(n):
        cursor.execute("select 1")

@pytest.mark.marey(calls={"sqlite3.Cursor.execute": "<=3", "query": 1, "test_it.query": "<2"}, time="<100s")
@pytest.mark.parametrize("n", [3, 4])
def test_queries(n):
    query(n)

@pytest.mark.marey(time="< 1 ns")
def test_time():
    pass

@pytest.mark.marey(time="<1ns")
def test_own_failure():
    assert 1 == 2
"""


@pytest.mark.parametrize("options", [[], ["--marey"]])
def test_a_marked_test_fails_if_it_exceeds_a_limit(run, options):
    result = run(LIMITS, "--strict-markers", *options)
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            "marey: sqlite3.Cursor.execute was called 4 times, expected <=3",
            "marey: the test took * expected < 1 ns",
            "E       assert 1 == 2",
        ]
    )
    failure = result.stdout.str().partition("_ test_own_failure _")[2].partition("====")[0]
    assert "took" not in failure  # a test that fails by itself keeps its own error


WRONG_MARKERS = {
    "tme='<5ms'": "unknown argument 'tme': expected time='<50ms' or calls={'name': '<=3'}",
    "'<5ms'": "unknown argument '<5ms'",
    "time='<5'": "invalid time '5': expected a number with a unit",
    "time='fast'": "invalid time 'fast'",
    "calls={'f': 'few'}": "invalid number of calls 'few': expected a limit such as '<=3'",
    "calls=['f']": "calls must be a dict of limits by name, not ['f']",
}


def test_a_wrong_marker_fails_its_test_with_one_line(run):
    text = "import pytest\ndef test_a(): pass\n"
    for number, arguments in enumerate(WRONG_MARKERS):
        text += f"@pytest.mark.marey({arguments})\ndef test_{number}(): pass\n"
    result = run(text, "--strict-markers")
    result.assert_outcomes(passed=1, failed=len(WRONG_MARKERS))
    for message in WRONG_MARKERS.values():
        assert f"marey marker: {message}" in result.stdout.str()


def test_the_fixture_counts_calls_exactly(run):
    result = run(
        """
import json, threading
from concurrent.futures import ThreadPoolExecutor

def load(n):
    return [json.loads("[]") for _ in range(n)]

def numbers():
    yield 1
    yield 2

class Cart:
    def load(self):
        return load(2)

def test_counts(marey_trace):
    assert marey_trace.calls("load") == 0
    Cart().load()
    assert marey_trace.calls("test_it.load") == 1
    assert marey_trace.calls("Cart.load") == 1
    assert marey_trace.calls("load") == 2
    assert marey_trace.calls("json.loads") == 2
    assert marey_trace.calls("json.*.decode") == 2
    assert marey_trace.calls("no_such_function") == 0
    assert list(numbers()) == [1, 2] and marey_trace.calls("numbers") == 1
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(load, [1, 1, 1]))
    assert marey_trace.calls("test_it.load") == 4
    assert len(marey_trace.trace) > 0

def test_other_threads_are_not_counted(marey_trace):
    pass

def test_kept_afterwards(request):
    pass
"""
    )
    result.assert_outcomes(passed=3)


# ---- captures


@pytest.fixture
def installed(pytester, monkeypatch):
    """A project whose package is installed, as tox and CI do it, and another package that calls it back."""
    site = pytester.path / "env" / "lib" / "site-packages"
    for name in ("shop", "caller"):
        (site / name).mkdir(parents=True)
    (site / "shop" / "__init__.py").write_text(
        "def price(n):\n    return sum(range(n)) + tax(n)\ndef tax(n): return n\n"
    )
    (site / "shop" / "test_own.py").write_text(
        "from shop import price\ndef helper(): price(9)\ndef test_own(): helper()\n"
    )
    (site / "caller" / "__init__.py").write_text("def invoke(f, n): return inner(f, n)\ndef inner(f, n): return f(n)\n")
    info = site / "my_shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-shop\nVersion: 1.0\n")
    (info / "RECORD").write_text("shop/__init__.py,,\nmy_shop-1.0.dist-info/METADATA,,\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    return site


INSTALLED_SUITE = "import caller, shop\ndef test_price(): assert caller.invoke(shop.price, 1000)\n"


@pytest.mark.parametrize(
    ("project", "options", "is_recorded"),
    [
        ('[project]\nname = "My.Shop"\n', [], True),
        ('[tool.poetry]\nname = "my-shop"\n', [], True),
        ("", [], False),
        ("", ["--marey-package", "my-shop"], True),
        ("", ["--marey-package=shop", "--marey-package=json"], True),
        ('[project]\nname = "my-shop"\n', ["--marey-package", "caller"], False),
    ],
)
def test_the_tested_package_is_recorded_whole_even_if_it_is_installed(
    run, pytester, installed, project, options, is_recorded
):
    (pytester.path / "pyproject.toml").write_text(project)
    result = run(INSTALLED_SUITE, "--marey-out", "out", *options, "test_it.py")
    result.assert_outcomes(passed=1)
    found = {event.name.rpartition("): ")[2] for event in marey.load(pytester.path / "out/pytest.marey").events()}
    assert "invoke" in found and ("tax" in found) == is_recorded
    assert ("inner" in found) == ("caller" in options)


def test_a_package_in_the_source_folder_is_that_of_the_project(run, pytester, installed):
    (pytester.path / "src" / "shop").mkdir(parents=True)
    (pytester.path / "src" / "shop" / "__init__.py").touch()
    run(INSTALLED_SUITE, "--marey-out", "out", "-n2" if importlib.util.find_spec("xdist") else "-v", "-p", "xdist")
    found = {event.name.rpartition("): ")[2] for event in marey.load(pytester.path / "out/pytest.marey").events()}
    assert {"invoke", "tax"} <= found and "inner" not in found


@pytest.mark.parametrize("place", ["--pyargs shop", "env/lib/site-packages/shop/test_own.py"])
def test_installed_tests_are_recorded(run, pytester, installed, place):
    result = run("", "--marey-out", "out", *place.split())
    result.assert_outcomes(passed=1)
    found = {event.name.rpartition("): ")[2] for event in marey.load(pytester.path / "out/pytest.marey").events()}
    assert {"test_own", "helper"} <= found


def test_a_package_that_does_not_exist_is_refused_with_one_line(run):
    result = run("", "--marey", "--marey-package", "no-such-package")
    result.stderr.fnmatch_lines(["ERROR: --marey-package: there is no installed package 'no-such-package'"])


def test_each_test_has_a_capture_of_its_own_if_asked_for(run, pytester):
    text = "import pytest\ndef work(): pass\n@pytest.mark.parametrize('x', ['a/b', 'a b', 'ü', 'y' * 400])\n"
    text += "def test_it(x): work()\n"
    run(text, "--marey-out", "out", "--marey-each").assert_outcomes(passed=4)
    traces = [marey.load(path) for path in sorted((pytester.path / "out").glob("*.marey"))]
    assert len(traces) == 4
    for trace in traces:
        assert sum(name.startswith("test test_it.py::test_it[") for name in paths(trace)) >= 1
        assert {average.key: average.count for average in trace.key_averages()}["test_it.py(2): work"] == 1


def test_an_earlier_capture_is_kept(run, pytester):
    run(SUITE, "--marey-out", "out")
    run(SUITE, "--marey-out", "out")
    assert len(list((pytester.path / "out").glob("pytest*.marey"))) == 2


def test_the_capture_of_a_run_that_is_killed_has_the_tests_before(run, pytester):
    run("import os, signal\ndef test_a(): pass\ndef test_b(): os.kill(os.getpid(), 9)\n", "--marey-out", "out")
    names = [name.split(" > ")[0] for name in paths(marey.load(pytester.path / "out" / "pytest.marey"))]
    assert "test test_it.py::test_a" in names and "test test_it.py::test_b" in names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--marey-each"], "--marey-each needs --marey-out DIR"),
        (["--marey-out", "test_it.py/x"], "--marey-out: cannot create"),
    ],
)
def test_wrong_options_are_refused_with_one_line(run, options, message):
    result = run("def test_it(): pass", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


# ---- with other plugins


@needs("xdist")
def test_the_workers_of_xdist_are_merged_into_one_capture(run, pytester):
    text = "import os, pytest\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n): pass\n"
    result = run(text, "--marey", "--marey-out", "out", "-p", "xdist", "-n", "2")
    result.assert_outcomes(passed=8)
    assert [path.name for path in (pytester.path / "out").iterdir()] == ["pytest.marey"]
    trace = marey.load(pytester.path / "out" / "pytest.marey")
    tests = [name for name in paths(trace) if re.fullmatch(r"test test_it.py::test_it\[\d\]", name)]
    assert sorted(tests) == [f"test test_it.py::test_it[{n}]" for n in range(8)]
    result.stdout.fnmatch_lines("8 tests, *ranges")
    # The clock of the workers is that of this machine. (From Python 3.12 on, calls may be missing at some places.)
    assert [code for code, _, _ in trace.problems if code != "python_c_calls_missing"] == []


@needs("xdist")
def test_a_worker_that_dies_loses_nothing_that_it_recorded(run):
    text = "import os, time\ndef test_a(): pass\ndef test_b(): os.kill(os.getpid(), 9)\ndef test_c(): pass\n"
    result = run(text, "--marey", "-p", "xdist", "-n", "1")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines_random(
        ["*test_it.py::test_a  (setup*", "*test_it.py::test_b  (setup*", "*test_it.py::test_c  (setup*"]
    )


@needs("pytest_asyncio", "anyio", "pytest_cov", "pytest_rerunfailures")
def test_other_plugins_work_as_before(run):
    result = run(
        """
import asyncio, pytest

@pytest.mark.asyncio
async def test_asyncio():
    await asyncio.sleep(0)

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_anyio(anyio_backend):
    await asyncio.sleep(0)

runs = []

@pytest.mark.flaky(reruns=2)
def test_flaky():
    runs.append(1)
    assert len(runs) == 3

def test_prints():
    print("printed")

@pytest.mark.skip
def test_skipped(): pass

@pytest.mark.xfail
def test_fails(): assert False
""",
        "--marey",
        "-s",
        "--cov",
        *(word for name in ("asyncio", "anyio", "pytest_cov", "rerunfailures") for word in ("-p", name)),
    )
    outcomes = result.parseoutcomes()
    assert outcomes == {"passed": 4, "skipped": 1, "xfailed": 1, "rerun": 2}
    result.stdout.fnmatch_lines_random(["*printed*", "*test_it.py::test_flaky  (setup*", "TOTAL*"])


HOSTILE = {
    "forks": "pid = os.fork()\n    if pid == 0: os._exit(0)\n    assert os.waitpid(pid, 0)[1] == 0",
    "changes the directory": "os.chdir('/')",
    "removes modules": "for name in [n for n in sys.modules if 'marey' in n]: del sys.modules[name]",
    "clears modules": "kept = dict(sys.modules); sys.modules.clear(); sys.modules.update(\n"
    "        {n: m for n, m in kept.items() if 'marey' not in n})",
    "leaves a range open": "import marey; marey.begin('open')",
    "ends too much": "import marey; marey.end(); marey.end()",
    "starts a thread": "import threading; threading.Thread(target=lambda: None).start()",
    "calls exit": "sys.exit(3)",
    "uses a profile hook": "sys.setprofile(lambda *a: None); len(''); sys.setprofile(None)",
}


def test_hostile_tests_have_the_same_outcomes_as_without_recording(run, pytester):
    text = "import os, sys\n"
    for name, body in HOSTILE.items():
        text += f"def test_{name.replace(' ', '_')}():\n    {body}\n"
    plain = run(text)
    recorded = run(text, "--marey-out", "out")
    assert recorded.parseoutcomes() == plain.parseoutcomes() == {"passed": len(HOSTILE) - 1, "failed": 1}
    assert recorded.ret == plain.ret
    recorded.stdout.fnmatch_lines(f"{len(HOSTILE)} tests, *ranges")
    assert "Traceback" not in recorded.stderr.str()
    names = paths(marey.load(pytester.path / "out" / "pytest.marey"))
    assert len([name for name in names if re.search(r"::test_\w+$", name)]) >= len(HOSTILE)


@pytest.mark.skipif(bool(os.environ.get("PYTHONPATH")), reason="a build folder's package is not installed")
def test_the_installed_plugin_is_found_and_prints_no_warning_under_marey_run(pytester, monkeypatch):
    """pytest rewrites the assertions of plugins' packages, and warns about those that are imported already."""
    assert [entry.value for entry in entry_points(group="pytest11", name="marey")] == ["marey_pytest"]
    pytester.makepyfile(test_it="def test_it(marey_trace): pass")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    result = pytester.run(
        sys.executable, "-m", "marey", "run", "-q", "-m", "pytest", "-W", "error", "-p", "no:cacheprovider"
    )
    result.assert_outcomes(passed=1)


def test_the_first_three_lines_of_the_guide_work_when_pasted(tmp_path):
    page = (SOURCE / "docs" / "guide" / "pytest.md").read_text()
    lines = re.findall(r"^\$ (.*)", page.partition("```console\n")[2].partition("```")[0], re.MULTILINE)
    assert len(lines) == 3
    folder = tmp_path / "bin"  # the commands of this interpreter
    folder.mkdir()
    for name in ("pytest", "marey"):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTEST_PLUGINS": "marey_pytest"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "slowest tests (marey)" in done.stdout
    assert "test_sum.py(1): test_sum" in done.stdout.partition("recorded in")[2]
