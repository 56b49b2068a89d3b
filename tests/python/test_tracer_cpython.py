"""CPython test modules give the same results with tracing: a short form of `make test-cpython`."""

import importlib.util
import os
import subprocess
import sys

import conftest
import pytest


@pytest.mark.skipif(importlib.util.find_spec("test.test_generators") is None, reason="the interpreter has no tests")
@pytest.mark.skipif("MAREY_TEST_SANITIZER" in os.environ, reason="too slow")
@pytest.mark.parametrize("way", ["run", "run_c", "with_c"])
def test_cpython_test_modules_give_the_same_results_as_without_tracing(way):
    script = conftest.SOURCE / "tools" / "cpython_tests.py"
    modules = ["test_generators", "test_functools", "test_json.test_decode", "test_json.test_dump"]
    done = subprocess.run([sys.executable, script, "--way", way, *modules], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
