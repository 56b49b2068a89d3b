"""Builds extensions against the package as a user would, given only three CMake folders."""

import os
import subprocess
import sys

import pytest


def output_of(*words, env=None):
    """Run a program and return its output; fail if it fails."""
    done = subprocess.run([*map(str, words)], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def build_extensions(source, folder):
    """Build the CMake project `source` into `folder`, with the sanitizer that this test runs under."""
    pytest.importorskip("nanobind")
    pytest.importorskip("pybind11")
    sanitizer = os.environ.get("MAREY_TEST_SANITIZER")
    tools = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    output_of(
        "cmake",
        *("-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={sys.executable}"),
        f"-Dmarey_DIR={output_of(sys.executable, '-m', 'marey', '--cmake-dir')}",
        f"-Dnanobind_DIR={output_of(sys.executable, '-m', 'nanobind', '--cmake_dir')}",
        f"-Dpybind11_DIR={output_of(sys.executable, '-m', 'pybind11', '--cmakedir')}",
        f"-DCMAKE_CXX_FLAGS_DEBUG={f'-O0 -fsanitize={sanitizer}' if sanitizer else '-O0'}",
        env=tools,
    )
    output_of("cmake", "--build", folder, "-j2", env=tools)
