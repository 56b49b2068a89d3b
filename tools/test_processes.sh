#!/usr/bin/env bash
# test_processes.sh BUILD_DIR COUNT: records a run of COUNT forked processes, and checks that one file has them all.
set -euo pipefail
dir="$(cd "$1" && pwd)"
count="$2"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
TIMEFORMAT="recording and packing: %R s, %U s user, %S s system"
time "$dir/marey" run -o job.marey -- "$dir/tests/tree_program" fork "$count" 10
files="$(find . -type f | wc -l)"
[ "$files" = 1 ] || { echo "test_processes.sh: $files files are left, expected 1" >&2; exit 1; }
TIMEFORMAT="loading: %R s"
time "$dir/marey" info --json job.marey >info.json
python3 - "$count" <<'END'
import json, os, sys
info = json.load(open("info.json"))
count, found = int(sys.argv[1]) + 1, len(info["processes"])
assert found == count, f"{found} processes, expected {count}"
assert info["ranges"] >= (count - 1) * 11 + 1, f"{info['ranges']} ranges are too few"
size = os.path.getsize("job.marey")
print(f"{found} processes, {info['ranges']} ranges, {size} bytes: {size / found:.0f} bytes a process")
END
