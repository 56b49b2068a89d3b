#!/usr/bin/env bash
# torch_tests.sh BUILD [pytest arguments]: runs tests/torch, and the tests in tests/python that need PyTorch.
#
# TORCH=2.15.0 selects a PyTorch version, TORCH=all runs each version in tools/torch_versions.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
build="$PWD/$1"
shift
export PYTHONPATH="$build/python" MAREY_BUILD_DIR="$build" PYTHONDONTWRITEBYTECODE=1
if tools="$(tools/python_env.sh trace_tools)"; then export MAREY_TRACE_TOOLS="$tools"; fi
if tools="$(tools/python_env.sh trace_tools_pandas2)"; then export MAREY_TRACE_TOOLS_PANDAS2="$tools"; fi

versions=("${TORCH:-}")
[ "${TORCH:-}" != all ] || mapfile -t versions < <(sed -n 's/^\([0-9][0-9.]*\).*/\1/p' tools/torch_versions.txt)
status=0
failed=()
for version in "${versions[@]}"; do
    python="$(TORCH="$version" tools/python_env.sh torch)"
    [ ${#versions[@]} = 1 ] || echo "== PyTorch $version"
    outcome=0
    "$python" -m marey.torch >/dev/null || exit  # compiles the observer once, for all tests
    "$python" -m pytest -q --no-header --tb=short -c pyproject.toml tests/torch "$@" || outcome=$?
    "$python" -m pytest -q --no-header --tb=short -c pyproject.toml tests/python/test_modules_torch.py "$@" || outcome=$?
    [ "$outcome" = 0 ] || { status=$outcome; failed+=("${version:-}"); }
done
[ ${#versions[@]} = 1 ] || [ ${#failed[@]} = 0 ] || echo "torch_tests.sh: failed with PyTorch ${failed[*]}" >&2

# A release that nobody has tested yet. Without a network there is no answer.
newest="$("$python" -m pip index versions torch 2>/dev/null | sed -n '1s/^torch (\([0-9.]*\).*/\1/p')" || true
listed="$(sed -n 's/^\([0-9][0-9.]*\).*/\1/p' tools/torch_versions.txt | sort -V | tail -n 1)"
if [ -n "$newest" ] && [ "$(printf '%s\n' "$newest" "$listed" | sort -V | tail -n 1)" != "$listed" ]; then
    echo "torch_tests.sh: PyPI has PyTorch $newest; the newest in tools/torch_versions.txt is $listed"
fi
exit "$status"
