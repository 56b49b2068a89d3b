#!/usr/bin/env bash
# python_env.sh: makes .venv with what tools/python_requirements.txt lists, and prints its interpreter.
#
# Takes no time when that has been done. PYTHON=/path/to/python3.12 chooses another interpreter than python3; the
# environment is made anew when the interpreter's version or the list changes.
set -euo pipefail
cd "$(dirname "$0")/.."
base="${PYTHON:-python3}"
requirements=tools/python_requirements.txt

version="$("$base" -c 'import sys; print(*sys.version_info[:3], sys.base_prefix)')" ||
    { echo "marey: no interpreter '$base' (PYTHON=off goes without the Python package)" >&2; exit 1; }
stamp="$(printf '%s\n' "$version" | cat - "$requirements" | sha256sum | cut -c1-40)"
if [ "$(cat .venv/marey_stamp 2>/dev/null)" != "$stamp" ] || ! .venv/bin/python -c '' 2>/dev/null; then
    echo "marey: making .venv" >&2
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    if ! { "$base" -m venv --clear .venv && .venv/bin/python -m pip install -r "$requirements"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "marey: no Python environment: .venv could not be made (PYTHON=off goes without the Python package)" >&2
        exit 1
    fi
    echo "$stamp" >.venv/marey_stamp
fi
echo "$PWD/.venv/bin/python"
