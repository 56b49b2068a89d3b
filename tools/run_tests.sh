#!/usr/bin/env bash
# run_tests.sh PRESET [ctest arguments]: runs the tests of build/PRESET; the last line says how many passed and failed.
set -uo pipefail
cd "$(dirname "$0")/.."
preset="$1"
shift
dir="build/$preset"
jobs="${JOBS:-$(nproc)}"

# The Python package is tested as pip installs it, into .venv, out of what has been built here: nothing is compiled twice.
cached() {  # cached NAME: a variable of the build folder's cache
    sed -n "s/^$1:[^=]*=//p" "$dir/CMakeCache.txt"
}
if [ "$(cached MAREY_BUILD_PYTHON)" = ON ] && [ "$(cached MAREY_TEST_INSTALLED_PYTHON)" = ON ]; then
    python="$(cached Python_EXECUTABLE)"
    if ! CMAKE_GENERATOR="$(cached CMAKE_GENERATOR)" "$python" -m pip install --no-build-isolation --no-deps \
            --config-settings=build-dir="$dir" . >"$dir/pip.log" 2>&1; then
        tail -n 40 "$dir/pip.log"
        echo "run_tests.sh: pip could not install the Python package" >&2
        exit 1
    fi
fi

prefix=()
case "$preset" in
    asan)
        # Looking for leaks takes seconds per process on some machines, and each test is a process: the tests run
        # without it, and each test program then once more, whole, with it (below).
        export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
        export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
        ;;
    tsan)
        export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp:${TSAN_OPTIONS:-}"
        # Older ThreadSanitizers cannot start where the kernel randomises many address bits.
        setarch "$(uname -m)" -R true 2>/dev/null && prefix=(setarch "$(uname -m)" -R)
        ;;
esac

"${prefix[@]}" ctest --test-dir "$dir" --output-on-failure --no-label-summary -j "$jobs" "$@" | tee "$dir/ctest.log"
rc=${PIPESTATUS[0]}
failed=$(sed -nE 's/.*, ([0-9]+) tests? failed out of [0-9]+.*/\1/p' "$dir/ctest.log")
total=$(sed -nE 's/.* tests? failed out of ([0-9]+).*/\1/p' "$dir/ctest.log")
skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test .*\*\*\*Skipped' "$dir/ctest.log")
if [ -z "$total" ] || [ "$total" -eq 0 ]; then
    echo "run_tests.sh: ctest ran no test in $dir" >&2
    exit 1
fi

leaking=()
if [ "$preset" = asan ] && [ $# -eq 0 ]; then
    for program in "$dir"/tests/*; do
        # Those that are GoogleTest programs; the others are run by them.
        { [ -f "$program" ] && [ -x "$program" ] && grep -q gtest_list_tests "$program"; } || continue
        name="$(basename "$program")"
        log="$dir/leaks_$name.log"
        if (cd "$dir/tests" && ASAN_OPTIONS="detect_leaks=1:${ASAN_OPTIONS#detect_leaks=0:}" \
                timeout 600 "./$name" --gtest_brief=1) >"$log" 2>&1; then
            echo "no leaks: $name"
        else
            tail -n 60 "$log"
            leaking+=("$name")
        fi
    done
fi

echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped ($preset)"
if [ ${#leaking[@]} -gt 0 ]; then
    echo "leaks, or failures when run whole: ${leaking[*]}"
    exit 1
fi
exit "$rc"
