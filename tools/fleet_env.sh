#!/usr/bin/env bash
# fleet_env.sh: creates build/fleet, an environment with Spark, Ibis, sqlglot, Polars and DuckDB; prints its interpreter's path.
#
# It uses the interpreter for which the Python package is built.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(duckdb pyarrow "pyspark[connect]>=4.0" sqlglot "ibis-framework[duckdb]>=12" polars numpy pandas pytest hypothesis)
base="$(tools/python_env.sh)"
stamp="$("$base" -V) ${packages[*]}"
if [ "$(cat build/fleet/marey_stamp 2>/dev/null)" != "$stamp" ]; then
    echo "marey: creating build/fleet with Spark" >&2
    mkdir -p build
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    if ! { "$base" -m venv --clear build/fleet && build/fleet/bin/pip install "${packages[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "marey: cannot install Spark into build/fleet" >&2
        exit 1
    fi
    echo "$stamp" >build/fleet/marey_stamp
fi
echo "$PWD/build/fleet/bin/python"
