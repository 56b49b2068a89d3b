"""The observer of PyTorch's operators: compiled against the PyTorch that is installed, once, then loaded."""

import os
import sys

import torch

import marey
from marey._command import find
from marey._marey import Error
from marey._marey import torch as native

_FILE = "observer.so"


def load():
    """Has every session record PyTorch's operators from now on; compiles the observer if that was never done."""
    if not native.is_loaded():
        native.load(build())


def build():
    """Compiles the observer unless that has been done, and gives its path."""
    sources = _sources()
    key = _key(sources, _headers())
    folder = _writable_folder()
    path = os.path.join(folder, key, _FILE)
    if os.path.exists(path):
        return path
    import fcntl

    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(os.path.join(folder, key, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it
        if not os.path.exists(path):
            compiler()
            print(
                f"marey: compiling for PyTorch {torch.__version__}, this once (half a minute)",
                file=sys.stderr,
                flush=True,
            )
            compile_library(os.path.join(sources, "observer.cpp"), path)
    return path


def find_built():
    """The path of the observer that fits, None where it has not been compiled. Makes nothing."""
    key = _key(_sources(), _headers())
    for folder in (_cache_folder(), _temporary_folder()):
        path = os.path.join(folder, key, _FILE)
        if os.path.exists(path):
            return path
    return None


def _sources():
    """The folder of the observer's sources."""
    folder = find(marey.__path__, "torch", "observer")
    if folder is None:
        raise Error("this package of marey has no sources of the observer of PyTorch's operators")
    return folder


def _headers():
    folder = find(marey.__path__, "include")
    if folder is None:
        raise Error("this package of marey has no headers")
    return folder


def _key(sources, headers):
    """A name for what is compiled: equal only where the result can be used."""
    import hashlib
    import platform

    digest = hashlib.sha256()
    facts = (torch.__version__, torch.version.git_version, platform.machine(), native.LAYOUT, _flags())
    digest.update(repr(facts).encode())
    for top in (sources, os.path.join(headers, "marey")):
        for folder, folders, files in os.walk(top):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".h", ".cpp")):
                    with open(os.path.join(folder, name), "rb") as file:
                        digest.update(name.encode() + b"\0" + file.read())
    return f"torch-{torch.__version__.partition('+')[0]}-{digest.hexdigest()[:24]}"


def _cache_folder():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "marey", "torch")


def _temporary_folder():
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"marey-{os.getuid()}")


def _writable_folder():
    """Where compiled observers are kept: the user's cache, or else a folder for temporary files."""
    cache = folder = _cache_folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        pass
    if os.access(folder, os.W_OK | os.X_OK):
        return folder
    folder = _temporary_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.getuid():  # what is loaded from there would be somebody else's
        raise Error(
            f"{folder}: belongs to somebody else, and {cache} cannot be written to: nowhere to keep the observer"
        )
    return folder


def _flags():
    return (
        *("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(() if torch.version.debug else ("-DNDEBUG",)),  # classes of PyTorch have other members without it
    )


def compiler():
    """The compiler, and what CXX has behind its name (or before: `ccache g++`)."""
    import shlex
    import shutil

    asked = os.environ.get("CXX")
    for words in [shlex.split(asked)] if asked else [["c++"], ["g++"], ["clang++"]]:
        path = shutil.which(words[0]) if words else None
        if path is not None:
            return [path, *words[1:]]
    raise Error(
        f"marey.torch needs a C++ compiler, once, to fit itself to PyTorch {torch.__version__}: "
        + (f"{asked} (CXX) was not found" if asked else "none of c++, g++, clang++ was found")
        + "; install one (apt-get install g++), or set CXX"
    )


def compile_library(source, path):
    """Compiles one source file against PyTorch and Marey into a shared library."""
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
            f"{' '.join(words)} could not compile marey.torch for PyTorch {torch.__version__}: "
            f"{lines[0].strip() if lines else 'it said nothing'} (all of it is in {log})"
        )
    os.rename(made, path)
