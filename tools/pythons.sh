#!/usr/bin/env bash
# pythons.sh: prints the interpreters that can build the Python package, one per line: $PYTHON if it is set, otherwise
# every supported python3.N in PATH with the module venv and its headers.
set -euo pipefail
cd "$(dirname "$0")/.."
candidates=("${PYTHON:-}")
if [ -z "${PYTHON:-}" ]; then
    candidates=()
    for minor in $(python3 -c 'import tools.supported_python as s
first, end = s.supported(open("pyproject.toml").read())
print(*range(first[1], end[1]))'); do
        candidates+=("python3.$minor")
    done
fi
usable='import ensurepip, os, sysconfig, venv
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")): raise SystemExit("Python.h not found")'
for python in "${candidates[@]}"; do
    if ! "$python" -c '' 2>/dev/null; then  # not there, or a shim without a version
        [ -z "${PYTHON:-}" ] || echo "marey: cannot run the interpreter '$python'" >&2
        continue
    fi
    if ! why="$("$python" -c "$usable" 2>&1)"; then
        echo "marey: left out $python: $(echo "$why" | tail -n 1) (on Debian: apt-get install $python-dev $python-venv)" >&2
        continue
    fi
    echo "$python"
done
