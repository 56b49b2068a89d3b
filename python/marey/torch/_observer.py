"""Compiles the observer of PyTorch operators once for the installed PyTorch, and loads it."""

from __future__ import annotations

import os
import sys

import torch

import marey
from marey._marey import Error
from marey._marey import torch as native
from marey.context import processes
from marey.launch.command import find

_FILE = "observer.so"


def load() -> None:
    """Record PyTorch operators in every session from now on; compile the observer if necessary."""
    if not native.is_loaded():
        native.load(build())
    processes.recorders["marey.torch"] = "torch"


def build() -> str:
    """Compile the observer unless the package has it or that has been done, and return its path."""
    sources = _sources()
    key = _key(sources, _headers())
    shipped = _shipped(key)
    if shipped is not None:
        return shipped
    folder = _writable_folder()
    path = os.path.join(folder, key, _FILE)
    if os.path.exists(path):
        return path
    import fcntl

    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(os.path.join(folder, key, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be compiling it
        if not os.path.exists(path):
            compiler()
            print(
                f"marey: compiling the observer for PyTorch {torch.__version__} (only once, takes half a minute)",
                file=sys.stderr,
                flush=True,
            )
            compile_library(os.path.join(sources, "observer.cpp"), path)
    return path


def find_built() -> str | None:
    """Return the path of the matching observer, or None if it has not been compiled. Creates nothing."""
    key = _key(_sources(), _headers())
    shipped = _shipped(key)
    if shipped is not None:
        return shipped
    for folder in (_cache_folder(), _temporary_folder()):
        path = os.path.join(folder, key, _FILE)
        if os.path.exists(path):
            return path
    return None


def _shipped(key: str) -> str | None:
    """Return the path of the observer in a wheel; wheels have those of some PyTorch versions."""
    return find(marey.__path__, "torch", "observers", key, _FILE)


def _sources() -> str:
    """Return the folder with the source files of the observer."""
    folder = find(marey.__path__, "torch", "observer")
    if folder is None:
        raise Error("the marey package is incomplete: the source files of the PyTorch observer are missing")
    return folder


def _headers() -> str:
    folder = find(marey.__path__, "include")
    if folder is None:
        raise Error("the marey package is incomplete: its headers are missing")
    return folder


def _key(sources: str, headers: str) -> str:
    """Return a name for the compiled file that is equal only if the file can be used."""
    import hashlib
    import platform

    digest = hashlib.sha256()
    version = torch.__version__.partition("+")[0]  # builds for CPUs and for CUDA have the same classes
    facts = (version, torch.version.git_version, platform.machine(), native.LAYOUT, _flags())
    digest.update(repr(facts).encode())
    for top in (sources, os.path.join(headers, "marey")):
        for folder, folders, files in os.walk(top):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".h", ".cpp")):
                    with open(os.path.join(folder, name), "rb") as file:
                        digest.update(name.encode() + b"\0" + file.read())
    return f"torch-{version}-{digest.hexdigest()[:24]}"


def _cache_folder() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "marey", "torch")


def _temporary_folder() -> str:
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"marey-{os.getuid()}")


def _writable_folder() -> str:
    """Return the folder for compiled observers: the user's cache, or else one for temporary files."""
    cache = folder = _cache_folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        pass
    if os.access(folder, os.W_OK | os.X_OK):
        return folder
    folder = _temporary_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.getuid():  # another user's library must not be loaded
        raise Error(
            f"cannot store the compiled observer: {cache} is not writable, and {folder} belongs to another user"
        )
    return folder


def _flags() -> tuple[str, ...]:
    return (
        *("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(() if torch.version.debug else ("-DNDEBUG",)),  # PyTorch classes have other members without it
    )


def compiler() -> list[str]:
    """Return the compiler command; CXX may add options, or a launcher as in `ccache g++`."""
    import shlex
    import shutil

    requested = os.environ.get("CXX")
    for words in [shlex.split(requested)] if requested else [["c++"], ["g++"], ["clang++"]]:
        path = shutil.which(words[0]) if words else None
        if path is not None:
            return [path, *words[1:]]
    raise Error(
        f"marey.torch needs a C++ compiler to compile its observer for PyTorch {torch.__version__}: "
        + (f"{requested} (CXX) was not found" if requested else "none of c++, g++, clang++ was found")
        + "; install one (apt-get install g++), or set CXX"
    )


def compile_library(source: str, path: str) -> None:
    """Compile one source file with PyTorch and Marey into a shared library."""
    import subprocess

    words = compiler()
    root = os.path.dirname(torch.__file__)
    made = f"{path}.{os.getpid()}"
    command = [
        *(*words, *_flags()),
        *("-I", _headers(), "-isystem", os.path.join(root, "include")),
        *(source, "-o", made, "-L", os.path.join(root, "lib"), "-ltorch_cpu", "-lc10", native.library_path()),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        log = os.path.join(os.path.dirname(path), "compiler.log")
        with open(log, "w") as file:
            file.write(" ".join(command) + "\n" + done.stdout + done.stderr)
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise Error(
            f"{' '.join(words)} could not compile the observer for PyTorch {torch.__version__}: "
            f"{lines[0].strip() if lines else 'no output'} (full output: {log})"
        )
    os.rename(made, path)
