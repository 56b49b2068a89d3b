#!/usr/bin/env python3
"""upstream_tests.py TESTS [FILE...]: runs PyTorch's own profiler tests with PyTorch's profiler and with Marey's.

    build/torch/bin/python tools/upstream_tests.py pytorch/test -o docs/reference/upstream_tests.md
    build/torch/bin/python tools/upstream_tests.py pytorch/test profiler/test_torch_tidy.py -k allocation

TESTS is the folder `test` of PyTorch's repository at the installed version; nothing of it belongs to this repository.
Each file runs twice: plain, and with `marey.torch.patch()` in each process. Only tests that pass plain are counted.
Exits with 1 if a test that PyTorch passes fails with Marey and has no reason in REASONS.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

# Files below TESTS, and pytest's -k for those that test other things too.
FILES = {
    "profiler/test_profiler.py": "",
    "profiler/test_memory_profiler.py": "",
    "profiler/test_torch_tidy.py": "",
    "profiler/test_profiler_tree.py": "",
    "profiler/test_execution_trace.py": "",
    "profiler/test_python_tracer.py": "",
    "profiler/test_kineto.py": "",
    "profiler/test_record_function.py": "",
    "profiler/test_trace_validator.py": "",
    "test_autograd.py": "profiler or record_function",
    "dynamo/test_profiler.py": "",
}

# Tests that Marey does not pass: why, and what a user notices. Names may end in "*".
_THREADS = "Threads that start while recording are traced too: there are more Python calls than in PyTorch."
REASONS = {
    "test_profiler.TestProfiler::test_source_multithreaded_complex*": _THREADS,
    "test_profiler.TestProfiler::test_source_multithreaded_open_in_scope*": _THREADS,
    "test_profiler.TestProfiler::test_profiler_op_event_kwargs": "A text with a quotation mark is kept; PyTorch "
    "replaces it with None.",
    "test_profiler.TestProfiler::test_profiler_op_event_kwargs_list_of_strings": "Every list is kept; PyTorch drops "
    "lists that are not all text.",
    "test_profiler_tree.TestProfilerTree::test_profiler_experimental_tree_with_stack_and_*": "The profiler's own calls "
    "(`__enter__`, `__exit__`) are not recorded; the rest of the tree is equal, except that Python 3.12 also records "
    "calls of classes that are implemented in C.",
    "test_python_tracer.TestPythonTracer::test_monitoring_callback": "Calls are traced under Marey's name, "
    "not PyTorch's.",
}

# Python runs it in every process, also in those that tests start: patches PyTorch as soon as it is imported.
START_FILE = """
from marey._imports import when_imported


def patch():
    import marey.torch

    marey.torch.patch()


when_imported("torch", patch)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", help="the folder `test` of PyTorch's repository")
    parser.add_argument("files", nargs="*", help=f"files below it (default: {', '.join(FILES)})")
    parser.add_argument("-k", default="", help="run only tests that match, as in pytest")
    parser.add_argument("-o", "--output", help="write the results as Markdown to this file")
    parser.add_argument("--show", action="store_true", help="print the errors of tests that fail with Marey only")
    given = parser.parse_args()
    results = {}
    for file in given.files or FILES:
        if not os.path.exists(os.path.join(given.tests, file)):
            print(f"upstream_tests.py: {given.tests}/{file} does not exist: not counted", file=sys.stderr)
            continue
        selection = given.k or FILES.get(file, "")
        plain = run(given.tests, file, selection, is_patched=False)
        ours = run(given.tests, file, selection, is_patched=True)
        counted = {name: ours.get(name, "not run") for name, error in plain.items() if error is None}
        results[file] = counted
        if not counted:
            print(f"upstream_tests.py: {file}: PyTorch passes none of {len(plain)} tests\n", *plain.values())
        failed = {name: error for name, error in counted.items() if error is not None}
        print(f"{file}: {len(counted) - len(failed)} of {len(counted)}", flush=True)
        for name, error in failed.items():
            print(f"  {'-' if reason(name) else 'FAILED'} {name}")
            if given.show:
                print("    " + error.replace("\n", "\n    "))
    if given.output:
        with open(given.output, "w") as output:
            output.write(document(results))
    return any(error is not None and not reason(name) for file in results.values() for name, error in file.items())


def run(tests, file, selection, is_patched):
    """Return {test: None, or the text of its error} for the tests of a file that were not skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        if is_patched:
            with open(os.path.join(folder, "sitecustomize.py"), "w") as start:
                start.write(START_FILE)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        command += ["-c", os.devnull]  # not the settings of a project around the folder
        if selection:
            command += ["-k", selection]
        given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        path = os.pathsep.join([folder, *map(os.path.abspath, given)])
        # CI makes upstream's tests quieter, and keeps them from asking the network for lists of known failures. Some
        # plugins of pytest run threads, which tests of threads would find.
        environment = {**os.environ, "PYTHONPATH": path, "CI": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        where, name = os.path.split(os.path.join(tests, file))
        done = subprocess.run(
            [*command, name], cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if not os.path.exists(report):
            raise SystemExit(f"upstream_tests.py: {file} left no report\n{done.stdout[-4000:]}")
        results = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            if case.find("skipped") is not None:
                continue
            error = case.find("failure") if case.find("failure") is not None else case.find("error")
            # "test_profiler.TestProfiler" whatever the folder's name
            group = ".".join(case.get("classname").split(".")[-2:])
            results[f"{group}::{case.get('name')}"] = None if error is None else error.text or error.get("message")
        return results


def reason(name):
    for pattern, text in REASONS.items():
        if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])):
            return text
    return ""


def document(results):
    import torch

    passed = {file: sum(error is None for error in tests.values()) for file, tests in results.items()}
    total = sum(len(tests) for tests in results.values())
    version = torch.__version__.partition("+")[0]
    device = "with CUDA" if torch.cuda.is_available() else "on a CPU"
    lines = [
        "# PyTorch's own profiler tests",
        "",
        f"PyTorch {version} {device}: each test that passes with PyTorch's profiler was run again after",
        "`marey.torch.patch()`. `make test-upstream TESTS=DIR` writes this file.",
        "",
        "| file | passed | of |",
        "|---|---:|---:|",
        *(f"| `{file}` | {passed[file]} | {len(tests)} |" for file, tests in results.items()),
        f"| **all** | **{sum(passed.values())}** | **{total}** |",
        "",
        "## Tests that Marey does not pass",
        "",
        "| test | reason, and what a user notices |",
        "|---|---|",
        *(
            f"| `{name}` | {reason(name) or 'not known yet'} |"
            for tests in results.values()
            for name, error in tests.items()
            if error is not None
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
