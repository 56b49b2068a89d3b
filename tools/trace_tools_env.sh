#!/usr/bin/env bash
# trace_tools_env.sh: creates build/trace_tools, an environment with tools that read PyTorch's traces
# (HolisticTraceAnalysis, TensorBoard's PyTorch plugin); prints its interpreter's path.
#
# Their declared dependencies include all of Jupyter, which reading traces does not need: only these are installed.
set -euo pipefail
cd "$(dirname "$0")/.."
base="$(tools/python_env.sh)"
tools=(HolisticTraceAnalysis==0.5.0 torch-tb-profiler==0.4.3)
needs=(pandas plotly networkx pydot psutil pyyaml tensorboard)
stamp="$("$base" -V) ${tools[*]} ${needs[*]}"
if [ "$(cat build/trace_tools/marey_stamp 2>/dev/null)" != "$stamp" ]; then
    echo "marey: creating build/trace_tools with ${tools[*]}" >&2
    mkdir -p build
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    pip=build/trace_tools/bin/pip
    if ! { "$base" -m venv --clear build/trace_tools && $pip install "${needs[@]}" && $pip install --no-deps "${tools[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "marey: cannot install ${tools[*]} into build/trace_tools" >&2
        exit 1
    fi
    echo "$stamp" >build/trace_tools/marey_stamp
fi
echo "$PWD/build/trace_tools/bin/python"
