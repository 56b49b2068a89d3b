"""Runs test modules of CPython with and without call tracing, and tells what comes out differently.

    python tools/cpython_tests.py                            all modules, every way of tracing
    python tools/cpython_tests.py --way python test_json     one of each

The interpreter that runs this must have its `test` package and find `kymo`. A test that differs is run again, together
with the others that do: only what differs twice counts.
"""

import argparse
import json
import os
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
WAYS = {"off": None, "python": False, "with_c": True, "all_c": "all"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="module")
    parser.add_argument("--way", action="append", choices=[way for way in WAYS if way != "off"])
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for one run of one module")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return run_here(given.child, given.modules)
    differences = 0
    for module in given.modules:
        name = f"test.{module}"
        plain = run_apart("off", [name], given.timeout)
        if "(run)" in plain:  # then nothing is known
            print(f"{module}: {plain['(run)']} without tracing")
            differences += 1
            continue
        for way in given.way or [way for way in WAYS if way != "off"]:
            began = time.monotonic()
            traced = run_apart(way, [name], given.timeout)
            differing = compare(plain, traced)
            if differing and "(run)" not in differing:
                again = run_apart(way, sorted(differing), given.timeout)
                differing = {test: outcome for test, outcome in differing.items() if again.get(test) == outcome}
            print(f"{module} {way}: {len(traced)} tests, {time.monotonic() - began:.1f} s, {len(differing)} differ")
            for test, outcome in sorted(differing.items()):
                print(f"    {test}: {plain.get(test)} without, {outcome} with tracing")
            differences += len(differing)
    return 1 if differences else 0


def compare(plain, traced):
    """Tests that do not come out as without tracing, with how they do."""
    return {test: traced.get(test) for test in plain | traced if plain.get(test) != traced.get(test)}


def run_apart(way, names, timeout):
    """Runs tests in a process of their own: how each came out, and "(run)" if that did not end well."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "outcomes.json")
        command = [sys.executable, os.path.abspath(__file__), "--child", f"{way}={output}", *names]
        with open(os.path.join(folder, "log"), "w+b") as log:
            try:
                code = subprocess.run(
                    command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=timeout
                ).returncode
            except subprocess.TimeoutExpired:
                code = "timeout"
            log.seek(0)
            text = log.read()[-2000:].decode(errors="replace")
        if code != 0 or not os.path.exists(output):
            print(text)
            return {"(run)": f"exit {code}"}
        with open(output) as file:
            return json.load(file)


def run_here(child, names):
    """Runs tests in this process, traced as `child` says ("way=output")."""
    way, _, output = child.partition("=")
    import unittest

    import test.support

    test.support.use_resources = []
    outcomes = {}

    class Result(unittest.TextTestResult):
        def _note(self, test, outcome):
            # Of a test with several outcomes (subtests, clean-up) the worst counts.
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

    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    runner = unittest.TextTestRunner(resultclass=Result, verbosity=0)
    if way == "off":
        runner.run(suite)
    else:
        import kymo

        with kymo.profile(with_stack=True, c_calls=WAYS[way], max_bytes=1 << 27, policy="ring"):
            runner.run(suite)
    with open(output, "w") as file:
        json.dump(outcomes, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
