#!/usr/bin/env bash
# check.sh [--fix-format|--alone]: every check of the sources that does not run them. Runs all checks, then fails if one
# failed. --alone: only parses every C++ file by itself.
set -uo pipefail
cd "$(dirname "$0")/.."

pick() {  # pick NAME: version 14, for which the format is written, or else the installed version
    command -v "$1-14" || command -v "$1"
}
sources() {  # sources FOLDER...: C++ files, tracked or new, but not ignored
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard -- "$@"
    else
        find "$@" -type f
    fi | grep -E '\.(h|cpp|c)$' | sort -u | while read -r file; do [ -f "$file" ] && echo "$file"; done
}

all=(include src tests benchmarks examples)
clang_format="$(pick clang-format)"
python=""  # the interpreter of .venv, or nothing with PYTHON=off
[ "${PYTHON:-}" = off ] || python="$(tools/python_env.sh)" || exit 1
python_folders=(python tests tools benchmarks)
if [ "${1:-}" = --fix-format ]; then
    sources "${all[@]}" | xargs "$clang_format" -i
    [ -z "$python" ] || "$python" -m ruff format -q "${python_folders[@]}"
    exit
fi

failed=()
step() {  # step NAME COMMAND...
    local name="$1" begin=$SECONDS
    shift
    if "$@"; then
        echo "ok      $name ($((SECONDS - begin)) s)"
    else
        echo "FAILED  $name"
        failed+=("$name")
    fi
}

check_format() {
    [ -n "$clang_format" ] || { echo "clang-format not found: not checked"; return 0; }
    sources "${all[@]}" | xargs "$clang_format" --dry-run -Werror
}
check_python() {
    [ -n "$python" ] || { echo "PYTHON=off: not checked"; return 0; }
    "$python" -m ruff check -q "${python_folders[@]}" && "$python" -m ruff format -q --check "${python_folders[@]}"
}
check_types() {
    [ -n "$python" ] || { echo "PYTHON=off: not checked"; return 0; }
    tools/build.sh release --python marey_package && "$python" -m mypy --cache-dir build/mypy --no-error-summary
}
check_lint() {
    local tidy
    tidy="$(pick clang-tidy)" || { echo "clang-tidy not found: not checked"; return 0; }
    tools/build.sh release --python && tools/build.sh lint --python && python3 tools/lint.py "$@" "$tidy"
}
if [ "${1:-}" = --alone ]; then
    check_lint --alone
    exit
fi

check_odr() {
    tools/build.sh release --python && python3 tools/check_odr.py
}

step format check_format
step layers python3 tools/check_layers.py
step sizes python3 tools/check_sizes.py
step python check_python
step types check_types
step documents python3 tools/check_docs.py
step words python3 tools/check_words.py
step parity python3 tools/check_parity.py
step page tools/web.sh --check
step "tools' own tests" python3 -m unittest discover -q -s tools -p '*_test.py'
step "types defined once" check_odr
step lint check_lint

if [ ${#failed[@]} -gt 0 ]; then
    echo "check: failed: ${failed[*]}"
    exit 1
fi
echo "check: all passed"
