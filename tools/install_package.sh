#!/usr/bin/env bash
# install_package.sh BUILD_DIR: installs the Python package with pip out of a build folder; nothing is compiled twice.
set -euo pipefail
cd "$(dirname "$0")/.."
dir="$1"

cached() {  # cached NAME: a variable of the build folder's cache
    sed -n "s/^$1:[^=]*=//p" "$dir/CMakeCache.txt"
}
if ! CMAKE_GENERATOR="$(cached CMAKE_GENERATOR)" "$(cached Python_EXECUTABLE)" -m pip install \
        --no-build-isolation --no-deps --config-settings=build-dir="$dir" . >"$dir/pip.log" 2>&1; then
    tail -n 40 "$dir/pip.log" >&2
    echo "marey: pip could not install the Python package" >&2
    exit 1
fi
