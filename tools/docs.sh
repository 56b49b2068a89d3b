#!/usr/bin/env bash
# docs.sh [serve]: builds the documentation site in build/site; with serve, shows it at http://127.0.0.1:8000.
#
# MkDocs runs in its own environment, build/docs, which is recreated when python3 or tools/docs_requirements.txt
# changes. A broken link, or a public name that the Python API page lacks, is an error. DOCS_PYTHON gives another
# interpreter that already has the packages.
set -euo pipefail
cd "$(dirname "$0")/.."
requirements=tools/docs_requirements.txt
python="${DOCS_PYTHON:-build/docs/bin/python}"
if [ -z "${DOCS_PYTHON:-}" ]; then
    stamp="$({ python3 -V; cat "$requirements"; } | sha256sum | cut -c1-40)"
    if [ "$(cat build/docs/marey_stamp 2>/dev/null)" != "$stamp" ]; then
        echo "marey: creating build/docs" >&2
        mkdir -p build
        log="$(mktemp)"
        trap 'rm -f "$log"' EXIT
        if ! { python3 -m venv --clear build/docs && "$python" -m pip install -r "$requirements"; } >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            echo "marey: cannot install MkDocs into build/docs" >&2
            exit 1
        fi
        echo "$stamp" >build/docs/marey_stamp
    fi
fi
export NO_MKDOCS_2_WARNING=1  # from the theme; the versions here are pinned
if [ "${1:-}" = serve ]; then
    exec "$python" -m mkdocs serve
fi
# Not --quiet: with it, MkDocs ignores warnings, and --strict has no effect.
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
if ! "$python" -m mkdocs build --strict >"$log" 2>&1; then
    grep -v '^INFO' "$log" >&2
    exit 1
fi
echo "The site is in build/site: open build/site/index.html."
