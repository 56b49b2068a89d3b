#!/usr/bin/env bash
# python_env.sh [package|python|torch|fleet|trace_tools|trace_tools_pandas2|docs]: creates a Python environment and prints its interpreter's path.
#
# Without an argument: .venv, with the packages in tools/python_requirements.txt; package: .venv with those that building
# the Python package needs (tools/build_requirements.txt), to which the others are added later. PYTHON=/path/to/python3.12
# selects an interpreter other than python3; the other environments, in build/, use the same one. Does nothing if the
# environment is up to date; it is recreated when the interpreter's version or the list of packages changes. With the
# argument python: the packages of .venv in an environment of that interpreter's own, build/env-3.12.
set -euo pipefail
cd "$(dirname "$0")/.."
name="${1:-}"
folder="${name:+build/$name}"
folder="${folder:-.venv}"
bare=()  # packages to install without what they depend on
complete=""  # a program of the environment's interpreter, which installs the rest
case "$name" in
    "" | package | python)
        [ "$name" != package ] || folder=.venv
        packages=(-r tools/python_requirements.txt)
        [ "$name" != package ] || packages=(-r tools/build_requirements.txt)
        hint=" (PYTHON=off builds without the Python package)" ;;
    torch)  # MAREY_TORCH_PYTHON: another interpreter that has torch and pytest; TORCH: another PyTorch version
        [ -z "${MAREY_TORCH_PYTHON:-}" ] || { echo "$MAREY_TORCH_PYTHON"; exit; }
        default="$(sed -n 's/ default$//p' tools/torch_versions.txt)"
        release="${TORCH:-$default}"
        [ "$release" = "$default" ] || folder="$folder-$release"
        packages=(numpy pytest hypothesis)
        bare=("torch==$release")
        complete=tools/torch_without_cuda.py ;;
    fleet)
        packages=(duckdb pyarrow "pyspark[connect]>=4.0" sqlglot "ibis-framework[duckdb]>=12" polars numpy pandas pytest
                  hypothesis) ;;
    trace_tools | trace_tools_pandas2)  # they read PyTorch's traces; what they declare includes all of Jupyter, which
        # that does not need. HTA computes differently with pandas 2 and 3.
        pandas="pandas>=3"
        [ "$name" = trace_tools ] || pandas="pandas<3"
        packages=("$pandas" plotly networkx pydot psutil pyyaml tensorboard)
        bare=(HolisticTraceAnalysis==0.5.0 torch-tb-profiler==0.4.3) ;;
    docs)  # DOCS_PYTHON: another interpreter that has the packages
        [ -z "${DOCS_PYTHON:-}" ] || { echo "$DOCS_PYTHON"; exit; }
        packages=(-r tools/docs_requirements.txt) ;;
    *) echo "python_env.sh: unknown environment '$name': expected package, python, torch, fleet, trace_tools, trace_tools_pandas2 or docs" >&2; exit 2 ;;
esac
base="${PYTHON:-python3}"
[ "$base" != off ] || base=python3
version="$("$base" -c 'import sys; print(*sys.version_info[:3], sys.base_prefix)')" ||
    { echo "marey: cannot run the interpreter '$base' (PYTHON=off builds without the Python package)" >&2; exit 1; }
case "$name" in "" | package | python) "$base" tools/supported_python.py ;; esac
[ "$name" != python ] || folder="build/env-$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
list() {  # the packages, one per line
    if [ "${packages[0]}" = -r ]; then cat "${packages[1]}"; else printf '%s\n' "${packages[@]}" "${bare[@]}"; fi
    [ -z "$complete" ] || cat "$complete"
}
stamp_of() {  # stamp_of COMMAND...: of the interpreter, of what building needs, and of what the command prints
    { echo "$version"; cat tools/build_requirements.txt; "$@"; } | sha256sum | cut -c1-40
}
stamp="$(stamp_of list)"
build_stamp="$(stamp_of cat tools/build_requirements.txt)"
all_stamp="$(stamp_of cat tools/python_requirements.txt)"
python="$folder/bin/python"
has="$(cat "$folder/marey_stamp" 2>/dev/null || true)"
"$python" -c '' 2>/dev/null || has=""
[ "$name" != package ] || [ "$has" != "$all_stamp" ] || stamp="$has"  # it has more than is needed
if [ "$has" != "$stamp" ]; then
    create=("$base" -m venv --clear "$folder")
    if [ -z "$name" ] && [ "$has" = "$build_stamp" ]; then
        echo "marey: adding packages for tests and checks to $folder" >&2
        create=(true)
    else
        echo "marey: creating $folder" >&2
    fi
    mkdir -p build
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    if ! { "${create[@]}" && "$python" -m pip install "${packages[@]}" &&
           { [ ${#bare[@]} = 0 ] || "$python" -m pip install --no-deps "${bare[@]}"; } &&
           { [ -z "$complete" ] || "$python" "$complete"; }; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "marey: cannot create $folder${hint:-}" >&2
        exit 1
    fi
    echo "$stamp" >"$folder/marey_stamp"
fi
echo "$PWD/$python"
