#!/usr/bin/env python3
"""torch_without_cuda.py: completes an environment into which PyTorch was installed without its dependencies.

The interpreter that runs it is the environment's. PyTorch's builds for CUDA declare several gigabytes of libraries
that no test on a CPU calls. Of these only the small ones are installed that PyTorch's profiler calls in any case
(NEEDED); for each other library that PyTorch's libraries are linked with, this puts a stub of the same name beside
them: a library with the symbols and symbol versions that the loader looks for. A call into a stub ends the process, so
that no test passes on a wrong result. Where there is a GPU, and for builds without CUDA, everything is installed.
"""

import collections
import glob
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

NEEDED = ("cudart", "cupti")
DRIVER = "libcuda.so.1"  # PyTorch loads it only where there is a GPU


def main():
    declared = [
        text.partition(";")[0].strip() for text in importlib.metadata.requires("torch") if "extra ==" not in text
    ]
    of_cuda = [text for text in declared if re.match(r"nvidia-|cuda-|triton", text)]
    if os.path.exists("/dev/nvidiactl"):
        return install(declared)
    plain = [text for text in declared if text not in of_cuda]
    toolkits = [
        re.sub(r"\[.*\]", f"[{','.join(NEEDED)}]", text) for text in of_cuda if text.startswith("cuda-toolkit[")
    ]
    install(plain + toolkits)
    if of_cuda:
        make_stubs()


def install(requirements):
    subprocess.run([sys.executable, "-m", "pip", "install", *requirements], check=True)


def make_stubs():
    torch = os.path.dirname(importlib.util.find_spec("torch").origin)
    folder = os.path.join(torch, "lib")
    installed = glob.glob(f"{folder}/*") + glob.glob(f"{os.path.dirname(torch)}/nvidia/**/*.so*", recursive=True)
    present = {os.path.basename(path) for path in installed} | {DRIVER}
    present |= set(re.findall(r"^\s(\S+) \(", output("/sbin/ldconfig", "-p"), re.MULTILINE))
    needed = set()
    versions = collections.defaultdict(set)  # library -> the versions that the loader checks
    symbols = collections.defaultdict(set)  # version -> symbols; "": CUDA's symbols without a version
    for library in glob.glob(f"{folder}/lib*.so"):
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", library)))
        table = output("readelf", "-VW", library)
        for name, lines in re.findall(r"File: (\S+)  Cnt: \d+\n((?:.*  Name: .*\n)+)", table):
            versions[name] |= set(re.findall(r"Name: (\S+)", lines))
        table = output("readelf", "--dyn-syms", "-W", library)
        for symbol, version in re.findall(r" UND (\w+)@(\S+)", table):
            symbols[version].add(symbol)
        symbols[""] |= set(re.findall(r" UND ((?:cu|nccl|nv)\w+)$", table, re.MULTILINE))
    for name in sorted(needed - present):
        make_stub(os.path.join(folder, name), {version: sorted(symbols[version]) for version in versions[name] or {""}})


def make_stub(path, symbols):
    """Compile a library with these symbols: {version: names}."""
    with tempfile.TemporaryDirectory() as work:
        source, script = os.path.join(work, "stub.c"), os.path.join(work, "versions")
        with open(source, "w") as file:
            for names in symbols.values():
                file.writelines(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names)
        with open(script, "w") as file:
            for version, names in symbols.items():
                file.write(f"{version} {{ {'; '.join([*names, 'marey_stub'])}; }};\n")
        options = [f"-Wl,-soname,{os.path.basename(path)}", f"-Wl,--version-script,{script}"]
        output("gcc", "-shared", "-fno-builtin", *options, source, "-o", path)
    print(f"stub: {os.path.basename(path)}")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
