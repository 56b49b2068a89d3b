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
    found = _shipped(key) or _cached(key)
    if found is not None:
        return found
    import fcntl

    words = compiler()
    folder = os.path.join(_writable_folder(), key, _compiler_key(words))
    path = os.path.join(folder, _FILE)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"another process is compiling the observer for PyTorch {torch.__version__}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            compile_library(os.path.join(sources, "observer.cpp"), path)
    return path


def find_built() -> str | None:
    """Return the path of the matching observer, or None if it has not been compiled. Creates nothing."""
    key = _key(_sources(), _headers())
    return _shipped(key) or _cached(key)


def _cached(key: str) -> str | None:
    """Return the path of the observer that the present compiler made; without a compiler, that any one made."""
    try:
        made_by = _compiler_key(compiler())
    except Error:
        made_by = "*"
    import glob

    for folder in (_cache_folder(), _temporary_folder()):
        found = glob.glob(os.path.join(glob.escape(os.path.join(folder, key)), made_by, _FILE))
        if found and os.stat(found[0]).st_uid in (0, os.getuid()):
            return found[0]
    return None


def _compiler_key(words: list[str]) -> str:
    """Return a name that differs between compilers, their versions and their options."""
    import hashlib

    path = os.path.realpath(words[0])
    made = os.stat(path)
    facts = (path, made.st_size, made.st_mtime_ns, words[1:])
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:8]


def _say(text: str, end: str = "\n") -> None:
    """Print a line to the user, whatever the program did with its standard error."""
    stream = sys.stderr or sys.__stderr__
    if stream is not None:
        print(f"marey: {text}", file=stream, end=end, flush=True)


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
    """Compile one source file with PyTorch and Marey into a shared library, and say so."""
    words = compiler()
    root = os.path.dirname(torch.__file__)
    made = f"{path}.{os.getpid()}"
    command = [
        *(*words, *_flags()),
        *("-I", _headers(), "-isystem", os.path.join(root, "include")),
        *(source, "-o", made, "-L", os.path.join(root, "lib"), "-ltorch_cpu", "-lc10", native.library_path()),
    ]
    code, output = _run(command, f"compiling the observer for PyTorch {torch.__version__} (only once)")
    if code != 0:
        log = os.path.join(os.path.dirname(path), "compiler.log")
        with open(log, "w") as file:
            file.write(" ".join(command) + "\n" + output)
        lines = [line for line in output.splitlines() if "error" in line] or output.splitlines()
        raise Error(
            f"{' '.join(words)} could not compile the observer for PyTorch {torch.__version__}: "
            f"{lines[0].strip() if lines else 'no output'} (full output: {log})"
        )
    os.rename(made, path)


def _run(command: list[str], text: str) -> tuple[int, str]:
    """Run a command and return (exit code, output). On a terminal, the line that says so counts the seconds."""
    import subprocess
    import tempfile
    from time import monotonic

    stream = sys.stderr or sys.__stderr__
    is_terminal = stream is not None and stream.isatty()
    start = monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            _say(f"{text}, takes about half a minute", end="" if is_terminal else "\n")
            while True:
                try:
                    code = process.wait(1 if is_terminal else None)
                    break
                except subprocess.TimeoutExpired:
                    print(f"\rmarey: {text}: {monotonic() - start:.0f} s\x1b[K", file=stream, end="", flush=True)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            if is_terminal:
                print(file=stream, flush=True)
        output.seek(0)
        return code, output.read()
