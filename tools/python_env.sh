#!/usr/bin/env bash
# python_env.sh: creates .venv with the packages in tools/python_requirements.txt, and prints its interpreter's path.
#
# Does nothing if .venv is up to date. PYTHON=/path/to/python3.12 selects an interpreter other than python3. The
# environment is recreated when the interpreter's version or the list changes.
set -euo pipefail
cd "$(dirname "$0")/.."
base="${PYTHON:-python3}"
requirements=tools/python_requirements.txt

version="$("$base" -c 'import sys; print(*sys.version_info[:3], sys.base_prefix)')" ||
    { echo "marey: cannot run the interpreter '$base' (PYTHON=off builds without the Python package)" >&2; exit 1; }
stamp="$(printf '%s\n' "$version" | cat - "$requirements" | sha256sum | cut -c1-40)"
if [ "$(cat .venv/marey_stamp 2>/dev/null)" != "$stamp" ] || ! .venv/bin/python -c '' 2>/dev/null; then
    echo "marey: creating .venv" >&2
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    if ! { "$base" -m venv --clear .venv && .venv/bin/python -m pip install -r "$requirements"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "marey: cannot create .venv (PYTHON=off builds without the Python package)" >&2
        exit 1
    fi
    echo "$stamp" >.venv/marey_stamp
fi
echo "$PWD/.venv/bin/python"
