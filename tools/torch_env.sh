#!/usr/bin/env bash
# torch_env.sh: makes build/torch, an environment with PyTorch and what its tests need, and prints its interpreter.
#
# It is made for the interpreter that the Python package is built for. MAREY_TORCH_PYTHON names another one, which has
# torch and pytest already; TORCH chooses another release.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -n "${MAREY_TORCH_PYTHON:-}" ]; then
    echo "$MAREY_TORCH_PYTHON"
    exit
fi
torch="${TORCH:-torch==2.13.0}"
base="$(tools/python_env.sh)"
stamp="$("$base" -V) $torch"
if [ "$(cat build/torch/marey_stamp 2>/dev/null)" != "$stamp" ]; then
    echo "marey: making build/torch with $torch" >&2
    mkdir -p build
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    if ! { "$base" -m venv --clear build/torch && build/torch/bin/pip install "$torch" numpy pytest hypothesis; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "marey: PyTorch could not be installed into build/torch" >&2
        exit 1
    fi
    echo "$stamp" >build/torch/marey_stamp
fi
echo "$PWD/build/torch/bin/python"
