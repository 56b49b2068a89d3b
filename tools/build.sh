#!/usr/bin/env bash
# build.sh PRESET [--python|--package] [TARGET...]: configures build/PRESET and builds the targets; with no target, only configures.
#
# With --python the Python package and its tests are part of it, built for the interpreter of .venv, which is made if
# need be (tools/python_env.sh; PYTHON=off leaves it out); --package: without the packages that only tests and checks
# need. Without either, the folder keeps what it had. The presets python and extension are for the interpreter $PYTHON, in
# its own environment; what does not depend on Python is compiled once for all interpreters.
set -euo pipefail
cd "$(dirname "$0")/.."
preset="$1"
shift
dir="build/$preset"

cached() {  # cached NAME: a variable of the build folder's cache
    sed -n "s/^$1:[^=]*=//p" "$dir/CMakeCache.txt" 2>/dev/null || true
}
args=(--preset "$preset")
if [ "${1:-}" = --python ] || [ "${1:-}" = --package ]; then
    environment=""
    [ "$1" != --package ] || environment=package
    case "$preset" in python | extension) environment=python ;; esac
    shift
    if [ "${PYTHON:-}" = off ]; then
        args+=(-DMAREY_BUILD_PYTHON=OFF)
    else
        python="$(tools/python_env.sh $environment)"
        args+=(-DMAREY_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$python")
        # The package is tested as users get it: installed by pip (see tools/run_tests.sh).
        [ "$preset" = release ] && args+=(-DMAREY_TEST_INSTALLED_PYTHON=ON)
    fi
elif [ "$(cached MAREY_BUILD_PYTHON)" = ON ] && ! "$(cached Python_EXECUTABLE)" -c '' 2>/dev/null; then
    args+=(-DMAREY_BUILD_PYTHON=OFF)  # its .venv is gone
fi
# The presets name Ninja. Where it is missing make does as well; a folder keeps the generator it was made with.
if [ -f "$dir/CMakeCache.txt" ]; then
    generator="$(cached CMAKE_GENERATOR)"
    [ -n "$generator" ] && args+=(-G "$generator")
elif ! command -v ninja >/dev/null 2>&1; then
    args+=(-G "Unix Makefiles")
fi
if [ "$preset" = fuzz ] && ! command -v clang++-14 >/dev/null 2>&1; then
    args+=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
fi

mkdir -p "$dir"
# shellcheck disable=SC2086  # CMAKE_ARGS is a list of words
if ! cmake "${args[@]}" ${CMAKE_ARGS:-} >"$dir/configure.log" 2>&1; then
    cat "$dir/configure.log" >&2
    exit 1
fi
grep -E 'marey: |Warning' "$dir/configure.log" || true
if [ $# -gt 0 ]; then
    cmake --build "$dir" -j "${JOBS:-$(nproc)}" --target "$@"
fi
