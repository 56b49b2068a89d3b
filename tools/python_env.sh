#!/usr/bin/env bash
# python_env.sh [torch|fleet|trace_tools|docs]: creates a Python environment and prints its interpreter's path.
#
# Without an argument: .venv, with the packages in tools/python_requirements.txt. PYTHON=/path/to/python3.12 selects an
# interpreter other than python3; the other environments, in build/, use the same one. Does nothing if the environment
# is up to date; it is recreated when the interpreter's version or the list of packages changes.
set -euo pipefail
cd "$(dirname "$0")/.."
name="${1:-}"
folder="${name:+build/$name}"
folder="${folder:-.venv}"
bare=()  # packages to install without what they depend on
case "$name" in
    "")
        packages=(-r tools/python_requirements.txt)
        hint=" (PYTHON=off builds without the Python package)" ;;
    torch)  # MAREY_TORCH_PYTHON: another interpreter that has torch and pytest; TORCH: another PyTorch release
        [ -z "${MAREY_TORCH_PYTHON:-}" ] || { echo "$MAREY_TORCH_PYTHON"; exit; }
        packages=("${TORCH:-torch==2.13.0}" numpy pytest hypothesis) ;;
    fleet)
        packages=(duckdb pyarrow "pyspark[connect]>=4.0" sqlglot "ibis-framework[duckdb]>=12" polars numpy pandas pytest
                  hypothesis) ;;
    trace_tools)  # they read PyTorch's traces; what they declare includes all of Jupyter, which that does not need
        packages=(pandas plotly networkx pydot psutil pyyaml tensorboard)
        bare=(HolisticTraceAnalysis==0.5.0 torch-tb-profiler==0.4.3) ;;
    docs)  # DOCS_PYTHON: another interpreter that has the packages
        [ -z "${DOCS_PYTHON:-}" ] || { echo "$DOCS_PYTHON"; exit; }
        packages=(-r tools/docs_requirements.txt) ;;
    *) echo "python_env.sh: unknown environment '$name': expected torch, fleet, trace_tools or docs" >&2; exit 2 ;;
esac
base="${PYTHON:-python3}"
[ "$base" != off ] || base=python3
version="$("$base" -c 'import sys; print(*sys.version_info[:3], sys.base_prefix)')" ||
    { echo "marey: cannot run the interpreter '$base' (PYTHON=off builds without the Python package)" >&2; exit 1; }
list() {  # the packages, one per line
    if [ "${packages[0]}" = -r ]; then cat "${packages[1]}"; else printf '%s\n' "${packages[@]}" "${bare[@]}"; fi
}
stamp="$({ echo "$version"; list; } | sha256sum | cut -c1-40)"
python="$folder/bin/python"
if [ "$(cat "$folder/marey_stamp" 2>/dev/null)" != "$stamp" ] || ! "$python" -c '' 2>/dev/null; then
    echo "marey: creating $folder" >&2
    mkdir -p build
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    if ! { "$base" -m venv --clear "$folder" && "$python" -m pip install "${packages[@]}" &&
           { [ ${#bare[@]} = 0 ] || "$python" -m pip install --no-deps "${bare[@]}"; }; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "marey: cannot create $folder${hint:-}" >&2
        exit 1
    fi
    echo "$stamp" >"$folder/marey_stamp"
fi
echo "$PWD/$python"
