"""cpython_tests.py: runs CPython's test modules with and without call tracing and reports different outcomes.

    python tools/cpython_tests.py                                all modules, all default ways of tracing
    python tools/cpython_tests.py --way run -j 2 test_json       one module, one way, two jobs

The interpreter must have its `test` package and be able to import `marey`. Under `marey run`, processes started by
tests are recorded too. Tests with different outcomes are run again together, with and without tracing; only tests that
differ both times are reported.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time

MODULES = [
    "test_generators",
    "test_coroutines",
    "test_threading",
    "test_asyncio",
    "test_json",
    "test_re",
    "test_functools",
]
# Options of `marey run`, or the value of `c_calls` for `marey.profile`.
MODES = {
    "off": None,
    "run": ["--no-c-calls"],
    "run_c": ["--c-calls"],
    "python": False,
    "with_c": True,
    "all_c": "all",
}
DEFAULT_MODES = ["run", "run_c", "all_c"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="module")
    parser.add_argument("--way", action="append", choices=[way for way in MODES if way != "off"])
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one run of one module (default 3600)")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="number of modules to run at a time (default 1)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return run_here(given.child, given.modules)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that send SIGINT hang if it is ignored
    modules = [part for module in given.modules for part in parts_of(module)]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        done = [pool.submit(try_module, module, given.way or DEFAULT_MODES, given.timeout) for module in modules]
        return 1 if sum(each.result() for each in done) else 0


def parts_of(module):
    """The modules to run for `module`: those of test_asyncio one by one, because it takes many minutes."""
    if module != "test_asyncio":
        return [module]
    package = importlib.util.find_spec("test.test_asyncio")
    names = [each.name for each in pkgutil.iter_modules(package.submodule_search_locations)]
    return [f"{module}.{name}" for name in sorted(names) if name.startswith("test_")]


def try_module(module, ways, timeout):
    """Runs one module in every way and returns the number of tests that differ."""
    name = f"test.{module}"
    plain = run_isolated("off", [name], timeout)
    if "(run)" in plain:  # there is nothing to compare with
        print(f"{module}: {plain['(run)']} without tracing", flush=True)
        return 1
    differences = 0
    for way in ways:
        began = time.monotonic()
        traced = run_isolated(way, [name], timeout)
        differing = compare(plain, traced)
        if differing and "(run)" not in differing:
            names = sorted(differing)
            once, again = run_isolated("off", names, timeout), run_isolated(way, names, timeout)
            differing = {
                test: outcome
                for test, outcome in differing.items()
                if again.get(test) == outcome and once.get(test) == plain.get(test)
            }
        text = f"{module} {way}: {len(traced)} tests, {time.monotonic() - began:.1f} s, {len(differing)} differ"
        for test, outcome in sorted(differing.items()):
            text += f"\n    {test}: {plain.get(test)} without, {outcome} with tracing"
        print(text, flush=True)
        differences += len(differing)
    return differences


def compare(plain, traced):
    """Tests whose outcome differs with tracing, with that outcome."""
    return {test: traced.get(test) for test in plain | traced if plain.get(test) != traced.get(test)}


def run_isolated(way, names, timeout):
    """Runs tests in a separate process and returns their outcomes, or only "(run)" if the process failed."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as captures:
        output = os.path.join(captures, "outcomes.json")
        options = MODES[way] if isinstance(MODES[way], list) else None
        command = [os.path.abspath(__file__), "--child", f"{'off' if options else way}={output}", *names]
        if options:
            capture = os.path.join(captures, "tests.marey")
            command = ["-m", "marey", "run", "-q", "-o", capture, "--max-bytes", "128MB", "--ring", *options, *command]
        with open(os.path.join(captures, "log"), "w+b") as log:
            code = run_session([sys.executable, *command], folder, log, timeout)
            log.seek(0)
            text = log.read()[-2000:].decode(errors="replace")
        if code == 0 and options and not os.path.exists(capture):
            code, text = "0", f"{text}\nno capture was written"
        if code != 0 or not os.path.exists(output):
            print(text, flush=True)
            return {"(run)": f"exit {code}"}
        with open(output) as file:
            return json.load(file)


def run_session(command, folder, log, timeout):
    """Runs a command and returns its exit code. After the timeout, kills it and the processes it started."""
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "timeout"


def run_here(child, names):
    """Runs tests in this process, traced as `child` ("way=output") specifies."""
    way, _, output = child.partition("=")
    import unittest

    import test.support

    test.support.use_resources = []
    outcomes = {}

    class Result(unittest.TextTestResult):
        def _note(self, test, outcome):
            # If a test has several outcomes (subtests, clean-up), the worst one counts.
            before = outcomes.get(test.id(), "ok")
            outcomes[test.id()] = outcome if before in ("ok", "skipped") else before

        def addSuccess(self, test):
            self._note(test, "ok")

        def addError(self, test, error):
            super().addError(test, error)
            self._note(test, "error")

        def addFailure(self, test, error):
            super().addFailure(test, error)
            self._note(test, "failed")

        def addSkip(self, test, reason):
            self._note(test, "skipped")

        def addExpectedFailure(self, test, error):
            self._note(test, "expected failure")

        def addUnexpectedSuccess(self, test):
            self._note(test, "unexpected success")

        def addSubTest(self, test, subtest, error):
            if error is not None:
                super().addSubTest(test, subtest, error)
                self._note(test, "failed")

    suite = unittest.TestSuite()
    for name in names:
        try:
            suite.addTest(unittest.defaultTestLoader.loadTestsFromName(name))
        except unittest.SkipTest:  # a module for another system
            outcomes[name] = "skipped"
    runner = unittest.TextTestRunner(resultclass=Result, verbosity=0)
    if way == "off":
        runner.run(suite)
    else:
        import marey

        with marey.profile(with_stack=True, c_calls=MODES[way], max_bytes=1 << 27, policy="ring"):
            runner.run(suite)
    with open(output, "w") as file:
        json.dump(outcomes, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
