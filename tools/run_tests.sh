#!/usr/bin/env bash
# run_tests.sh PRESET [ctest arguments]: runs the tests in build/PRESET; the last line counts passes and failures.
set -uo pipefail
cd "$(dirname "$0")/.."
preset="$1"
shift
dir="build/$preset"
jobs="${JOBS:-$(nproc)}"

# The Python package is tested as pip installs it into .venv, from the files built here, so nothing is compiled twice.
cached() {  # cached NAME: a variable from the build folder's CMake cache
    sed -n "s/^$1:[^=]*=//p" "$dir/CMakeCache.txt"
}
if [ "$(cached MAREY_BUILD_PYTHON)" = ON ] && [ "$(cached MAREY_TEST_INSTALLED_PYTHON)" = ON ]; then
    tools/install_package.sh "$dir" || exit 1
fi

prefix=()
case "$preset" in
    asan)
        # Leak detection takes seconds per process on some machines, and each test is a process. So the tests run
        # without it, and below each test program runs once more as a whole with it.
        export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
        export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
        ;;
    tsan)
        export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp:${TSAN_OPTIONS:-}"
        # Older versions of ThreadSanitizer cannot start if the kernel randomises many address bits.
        setarch "$(uname -m)" -R true 2>/dev/null && prefix=(setarch "$(uname -m)" -R)
        ;;
esac

"${prefix[@]}" ctest --test-dir "$dir" --output-on-failure --no-label-summary -j "$jobs" "$@" | tee "$dir/ctest.log"
rc=${PIPESTATUS[0]}
failed=$(sed -nE 's/.*, ([0-9]+) tests? failed out of [0-9]+.*/\1/p' "$dir/ctest.log")
total=$(sed -nE 's/.* tests? failed out of ([0-9]+).*/\1/p' "$dir/ctest.log")
skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test .*\*\*\*Skipped' "$dir/ctest.log")
if [ -z "$total" ] || [ "$total" -eq 0 ]; then
    echo "run_tests.sh: ctest ran no tests in $dir" >&2
    exit 1
fi

leaking=()
if [ "$preset" = asan ] && [ $# -eq 0 ]; then
    for program in "$dir"/tests/*; do
        # Only GoogleTest programs; they start the others.
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

# The output of failed tests is repeated here, below the long list of skipped tests, where one looks first.
if [ "${failed:-0}" -gt 0 ]; then
    awk '/^ *Start +[0-9]+: |^ *[0-9]+\/[0-9]+ Test +#/ {shows = /\*\*\*(Failed|Timeout|Exception)/} /^[0-9]+% tests passed/ {exit} shows' \
        "$dir/ctest.log" | tail -n 120
fi
echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped ($preset)"
if [ ${#leaking[@]} -gt 0 ]; then
    echo "leaks, or failures when run as a whole: ${leaking[*]}"
    exit 1
fi
exit "$rc"
