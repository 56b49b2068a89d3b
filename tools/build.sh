#!/usr/bin/env bash
# build.sh PRESET TARGET...: configures build/PRESET and builds the targets; with no target, only configures.
set -euo pipefail
cd "$(dirname "$0")/.."
preset="$1"
shift
dir="build/$preset"

args=(--preset "$preset")
# The presets name Ninja. Where it is missing make does as well; a folder keeps the generator it was made with.
if [ -f "$dir/CMakeCache.txt" ]; then
    generator="$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$dir/CMakeCache.txt")"
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
grep -E 'kymo: |Warning' "$dir/configure.log" || true
if [ $# -gt 0 ]; then
    cmake --build "$dir" -j "${JOBS:-$(nproc)}" --target "$@"
fi
