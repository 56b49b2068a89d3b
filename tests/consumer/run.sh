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

# A language standard that is too old is one message, not an error for every line of the headers.
cxx="$(cached CMAKE_CXX_COMPILER)"
expect_refused() {  # expect_refused HEADER COMPILED NEEDED
    if echo "#include <marey/$1>" | "$cxx" -std="$2" -I"$work/moved/include" -fsyntax-only -x c++ - 2>"$work/log"; then
        echo "marey/$1 compiled as $2"
        exit 1
    fi
    if ! grep -q "error: .*needs $3" "$work/log" || [ "$(grep -c 'error: ' "$work/log")" != 2 ]; then
        echo "expected one #error for marey/$1 as $2 (and the error that stops the compiler), got:"
        cat "$work/log"
        exit 1
    fi
}
expect_refused marey.h c++14 C++17
for header in session.h analyze.h export.h all.h; do expect_refused "$header" c++17 C++20; done

# The header that instrumented files include is not longer than <string>.
lines() {
    echo "#include <$1>" | "$cxx" -std="$2" -I"$work/moved/include" -E -P -x c++ - | wc -l
}
for standard in c++17 c++20; do
    if [ "$(lines marey/marey.h $standard)" -gt "$(lines string $standard)" ]; then
        echo "marey/marey.h has $(lines marey/marey.h $standard) lines as $standard, <string> $(lines string $standard)"
        exit 1
    fi
done
if nm -C "$work/build/consumer_disabled" | grep -E 'marey::detail::(ScopedRange|record_)'; then
    echo "MAREY_DISABLE did not remove the recording code"
    exit 1
fi
# Without CMake: pkg-config gives the flags.
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH="$(dirname "$(find "$work/moved" -name marey.pc)")"
    export PKG_CONFIG_PATH
    pkg-config --atleast-version=0.2 marey || { echo "pkg-config does not find Marey"; exit 1; }
    # shellcheck disable=SC2046,SC2086  # these are lists of flags
    "$(cached CMAKE_CXX_COMPILER)" -std=c++17 $flags -c "$here/parser.cpp" -o "$work/parser.o" \
        $(pkg-config --cflags marey)
    # shellcheck disable=SC2046,SC2086
    "$(cached CMAKE_CXX_COMPILER)" -std=c++20 $flags "$here/main.cpp" "$work/parser.o" -o "$work/plain" \
        $(pkg-config --cflags --libs marey)
    "$work/plain"
else
    echo "no pkg-config: marey.pc not tested"
fi
if [ -x "$work/moved/bin/marey" ]; then  # finds its library by a relative path
    "$work/moved/bin/marey" --version
fi
