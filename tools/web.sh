#!/usr/bin/env bash
# web.sh [--check]: builds the page of `marey view` from web/ into web/dist. With --check, fails if the committed page differs.
#
# --check also rejects ways to turn text into markup or code: a trace is a stranger's file. Without npm, or without a
# network and node_modules, it skips the rebuild.
set -euo pipefail
cd "$(dirname "$0")/../web"

dangerous='innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\b|new Function|createContextualFragment|DOMParser'
if grep -nE "$dangerous" -r src index.html; then
    echo "web: use textContent or dom.ts instead" >&2
    exit 1
fi
if [ "${1:-}" = --check ]; then
    command -v npm >/dev/null || { echo "npm not found: web/dist not rebuilt"; exit 0; }
    [ -d node_modules ] || npm ci --silent --no-audit --no-fund >/dev/null 2>&1 || { echo "npm ci failed: web/dist not rebuilt"; exit 0; }
    again=$(mktemp -d)
    trap 'rm -rf "$again"' EXIT
    npm run --silent types
    node build.mjs "$again" >/dev/null
    diff -rq dist "$again" || { echo "web: web/dist is not what web/src builds: run make web" >&2; exit 1; }
else
    npm ci --silent --no-audit --no-fund
    npm run --silent types
    node build.mjs
fi
