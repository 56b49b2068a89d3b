#!/usr/bin/env bash
# run.sh BUILD_DIR: installs the Marey of a build folder into a temporary prefix, then builds and runs an independent
# project against it that uses only find_package(marey).
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
build="$(cd "$1" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cached() {  # cached NAME: prints a variable of the build folder's cache
    sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"
}
flags=""
sanitize="$(cached MAREY_SANITIZE)"
[ -n "$sanitize" ] && flags="-fsanitize=$sanitize"  # a library with a sanitizer needs a program with the same sanitizer

cmake --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Move it after installing: the package must not depend on its install path.
mv "$work/prefix" "$work/moved"
{
    cmake -S "$here" -B "$work/build" -G "$(cached CMAKE_GENERATOR)" -DCMAKE_PREFIX_PATH="$work/moved" \
        -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" -DCMAKE_CXX_FLAGS="$flags" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF &&
        cmake --build "$work/build"
} >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -q "^marey_DIR:PATH=$work/moved" "$work/build/CMakeCache.txt" || { echo "found another Marey"; exit 1; }

"$work/build/consumer"
"$work/build/consumer_disabled"
if nm -C "$work/build/consumer_disabled" | grep -E 'marey::detail::(ScopedRange|record_)'; then
    echo "MAREY_DISABLE did not remove the recording code"
    exit 1
fi
if [ -x "$work/moved/bin/marey" ]; then  # finds its library by a relative path
    "$work/moved/bin/marey" --version
fi
