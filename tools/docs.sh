#!/usr/bin/env bash
# docs.sh [serve]: builds the documentation site in build/site; with serve, shows it at http://127.0.0.1:8000.
#
# The API pages need the package's stubs, which its build writes. MkDocs runs in its own environment, build/docs
# (tools/python_env.sh). A broken link, or a public name that the Python
# API page lacks, is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${PYTHON/#off/python3}" tools/build.sh release --package marey_package
python="$(tools/python_env.sh docs)"
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
