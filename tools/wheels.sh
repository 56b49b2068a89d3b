#!/usr/bin/env bash
# wheels.sh: builds and tests one wheel for each interpreter that tools/pythons.sh finds.
#
# The interpreter of .venv uses build/release, the others build/python: what does not depend on Python is compiled once
# for all of them. The extension module contains the call tracer, which reads the interpreter's structures, so that no
# wheel serves several versions (abi3).
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t pythons < <(tools/pythons.sh)
[ ${#pythons[@]} -gt 0 ] || { echo "marey: no interpreter to build a wheel for" >&2; exit 1; }
version() { "$1" -c 'import sys; print(sys.version, sys.base_prefix)' 2>/dev/null || true; }
for python in "${pythons[@]}"; do
    preset=python
    if [ ${#pythons[@]} -eq 1 ] || [ "$(version "$python")" = "$(version .venv/bin/python)" ]; then preset=release; fi
    echo "marey: wheel for $python"
    PYTHON="$python" tools/build.sh "$preset" --python marey_package
    tools/wheel.sh "build/$preset"
    tools/wheel_test.sh
done
