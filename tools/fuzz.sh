#!/usr/bin/env bash
# fuzz.sh BUILD_DIR: runs each *_fuzzer for FUZZ_SECONDS over tests/data/corpus/<name>; findings stay in the build folder.
#
# capture_reader_fuzzer reads tests/data/corpus/capture_reader or, if that does not exist, tests/data/corpus/capture;
# formats_fuzzer reads all of tests/data/corpus. New inputs found by libFuzzer go to BUILD_DIR/corpus, not into the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
dir="$1"
seconds="${FUZZ_SECONDS:-600}"
count=0
for fuzzer in "$dir"/*_fuzzer; do
    [ -x "$fuzzer" ] || continue
    name="$(basename "$fuzzer" _fuzzer)"
    corpus=()
    for folder in "tests/data/corpus/$name" "tests/data/corpus/${name%_*}"; do
        if [ -d "$folder" ]; then
            corpus=("$folder")
            break
        fi
    done
    [ "$name" != formats ] || corpus=(tests/data/corpus)
    grown="$dir/corpus/$name"
    mkdir -p "$grown" "$dir/findings"
    echo "== $(basename "$fuzzer") for $seconds s, seeds: ${corpus[*]:-none}"
    if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
            -artifact_prefix="$dir/findings/$name-" "$grown" "${corpus[@]}" >"$dir/$name.log" 2>&1; then
        tail -n 60 "$dir/$name.log"
        echo "fuzz.sh: $name failed; the input is in $dir/findings, the full log in $dir/$name.log" >&2
        exit 1
    fi
    grep -E '^stat::(number_of_executed_units|peak_rss_mb)|^Done' "$dir/$name.log"
    count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "fuzz.sh: no fuzzers found in $dir" >&2; exit 1; }
echo "$count fuzzers, no findings"
