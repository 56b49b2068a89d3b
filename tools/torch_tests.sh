#!/usr/bin/env bash
# torch_tests.sh BUILD [pytest arguments]: runs tests/torch, and the tests in tests/python that need PyTorch.
set -euo pipefail
cd "$(dirname "$0")/.."
build="$PWD/$1"
shift
python="$(tools/python_env.sh torch)"
export PYTHONPATH="$build/python" MAREY_BUILD_DIR="$build" PYTHONDONTWRITEBYTECODE=1
if tools="$(tools/python_env.sh trace_tools)"; then export MAREY_TRACE_TOOLS="$tools"; fi
"$python" -m marey.torch >/dev/null  # compiles the observer once, for all tests
status=0
"$python" -m pytest -q --no-header --tb=short -c pyproject.toml tests/torch "$@" || status=$?
"$python" -m pytest -q --no-header --tb=short -c pyproject.toml tests/python/test_modules_torch.py "$@" || status=$?
exit "$status"
