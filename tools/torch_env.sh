#!/usr/bin/env bash
# torch_env.sh: creates build/torch, an environment with PyTorch and the test packages; prints its interpreter's path.
#
# It uses the interpreter for which the Python package is built. MAREY_TORCH_PYTHON gives another interpreter that
# already has torch and pytest; TORCH selects another PyTorch release.
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
    echo "marey: creating build/torch with $torch" >&2
    mkdir -p build
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    if ! { "$base" -m venv --clear build/torch && build/torch/bin/pip install "$torch" numpy pytest hypothesis; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "marey: cannot install PyTorch into build/torch" >&2
        exit 1
    fi
    echo "$stamp" >build/torch/marey_stamp
fi
echo "$PWD/build/torch/bin/python"
