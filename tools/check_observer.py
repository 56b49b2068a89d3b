#!/usr/bin/env python3
"""check_observer.py [VERSION...]: compiles the PyTorch observer with the headers of every PyTorch version.

Without arguments: the versions in tools/torch_versions.txt. Only PyTorch's headers are needed. They are taken from an
environment in build/ that has the version (tools/python_env.sh torch), or else from its wheel, which pip downloads
once; they stay in build/torch_headers. Nothing is linked. Exits with 1 if a version does not compile.
"""

import glob
import os
import shlex
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OBSERVER = os.path.join(ROOT, "src/sources/torch/observer/observer.cpp")
OPTIONS = "-std=c++20 -O2 -fPIC -fsyntax-only -Wall -Wextra -Werror -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI=1".split()


def versions():
    """Return the versions in tools/torch_versions.txt."""
    with open(os.path.join(ROOT, "tools/torch_versions.txt")) as file:
        return [line.split()[0] for line in file if line[:1].isdigit()]


def headers(version):
    """Return the folder with the headers of a version."""
    for folder in glob.glob(f"{ROOT}/build/torch*/lib/python*/site-packages"):
        if glob.glob(f"{folder}/torch-{version}[+.]*dist-info"):
            return os.path.join(folder, "torch/include")
    folder = os.path.join(ROOT, "build/torch_headers", version)
    if os.path.isdir(folder):
        return os.path.join(folder, "torch/include")
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", work, f"torch=={version}"]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(glob.glob(f"{work}/torch-*.whl")[0]) as wheel:
            wanted = [name for name in wheel.namelist() if name.startswith("torch/include/")]
            wheel.extractall(f"{folder}.part", wanted)
    os.rename(f"{folder}.part", folder)
    return os.path.join(folder, "torch/include")


def main():
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    failed = []
    for version in sys.argv[1:] or versions():
        includes = ["-I", os.path.join(ROOT, "include"), "-isystem", headers(version)]
        done = subprocess.run([*compiler, *OPTIONS, *includes, OBSERVER], capture_output=True, text=True)
        print(f"PyTorch {version}: {'compiles' if done.returncode == 0 else 'does not compile'}", flush=True)
        if done.returncode != 0:
            failed.append(version)
            print(done.stderr[:4000], file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
