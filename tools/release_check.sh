#!/usr/bin/env bash
# release_check.sh: builds the source archive and the wheels into dist/, and checks that they can be published.
#
# Builds the package from the unpacked archive alone, outside the clone and without git; checks the metadata with twine;
# tools/wheel_test.sh installs each wheel into an empty environment without a compiler and runs README's quick start.
# Publishes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
work="$PWD/build/release_check"
env="$work/env"
fail() {
    echo "FAILED  $1" >&2
    exit 1
}
mkdir -p "$work"
rm -rf dist "$work/source"

tools/build.sh release --python marey_package
python="$(tools/python_env.sh)"
archive="dist/$("$python" -c 'import scikit_build_core.build as build; print(build.build_sdist("dist"))' | tail -n 1)"
echo "ok      $archive: $(du -k "$archive" | cut -f1) KiB"

mkdir "$work/source"
tar -xzf "$archive" -C "$work/source" --strip-components=1
(cd "$work/source" && GIT_DIR=/nonexistent "$python" -m pip wheel --no-build-isolation --no-deps -w "$work/plain" .) \
    >"$work/archive.log" 2>&1 || { tail -n 30 "$work/archive.log" >&2; fail "the source archive does not build alone"; }
echo "ok      the source archive builds alone"

tools/wheels.sh
[ -x "$env/bin/twine" ] || { python3 -m venv --clear "$env" && "$env/bin/pip" -q install "twine>=6"; } ||
    fail "cannot install twine into $env"
"$env/bin/twine" check --strict dist/*
echo "release-check: all passed"
