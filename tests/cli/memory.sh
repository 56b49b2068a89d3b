#!/usr/bin/env bash
# memory.sh: `marey memory`, and the options of `marey run` for it. Needs MAREY_BIN; if MAREY_BUILD_DIR has examples/, a
# real capture is read.
. "$(dirname "$0")/check.bash"

check "help" 0 'Usage: marey memory' "$marey" memory --help
check "no file" 2 '^marey: memory: FILE is required' "$marey" memory
check "a missing file" 2 '^marey: missing\.marey: .*No such file' "$marey" memory missing.marey
check "wrong sort key" 2 "^marey: memory: unknown column 'zzz'; known: pid, device, device_index, path," "$marey" memory --sort zzz x.marey
check "run passes the settings to the program" 0 ',memory=on,shapes=on,flops=on(,|$)' \
    "$marey" run --memory --shapes --flops -- sh -c 'echo "$MAREY"'

network=${MAREY_BUILD_DIR:-}/examples/network
if [ -x "$network" ]; then
    check "run: with memory" 0 'allocation reports' "$marey" run --memory --flops -o net.marey -- "$network" 3
    check "the peak" 0 '^peak +[0-9.]+ KiB at .*; at most 8\.00 MiB reserved' "$marey" memory net.marey
    check "the device" 0 '^device +cpu$' "$marey" memory net.marey
    check "a refusal" 0 '^ *[0-9.]+ [mun]?s +16\.0 MiB +[0-9.]+ KiB +8\.00 MiB +(step > )?load batch$' \
        "$marey" memory net.marey
    check "holders, by path" 0 '^step > forward > aten::relu +128 KiB +1 +384 KiB +3 ' "$marey" memory net.marey
    check "column titles" 0 ' at peak +peak count +taken +taken count +total +freed +kept +kept count$' \
        "$marey" memory net.marey
    check "by name" 0 '^aten::relu +128 KiB +1 +512 KiB +4 ' "$marey" memory --by name net.marey
    check "outside any range" 0 '^\(outside any range\) ' "$marey" memory net.marey
    check "the limit" 0 '^\.\.\. and [0-9]+ more rows \(--limit 0 shows all\)' "$marey" memory --limit 1 net.marey
    "$marey" memory --limit 0 net.marey | grep -q 'more row' && fail "--limit 0 shows all"
    first=$("$marey" memory --sort total_allocated_bytes --by name net.marey | grep -A1 '^name ' | tail -1)
    grep -q '^step ' <<<"$first" || fail "--sort total_allocated_bytes" "$first"
    check "chosen columns" 0 '^ *taken +name$' "$marey" memory --columns allocated_bytes,name net.marey
    check "csv" 0 '^name,peak_bytes$' "$marey" memory --csv --columns name,peak_bytes net.marey
    if command -v python3 >/dev/null; then
        "$marey" memory --json net.marey >net.json || fail "--json"
        python3 - <<'PYTHON' || fail "--json has the values of the table"
import json
use = json.load(open("net.json", encoding="utf-8"))
(device,), holders = use["memory_devices"], use["memory_holders"]
assert device["device"] == "cpu" and device["has_totals"] is True
assert device["allocations"] == device["frees"] > 0
assert device["start_bytes"] == device["end_bytes"] == device["kept_bytes"] == 0
assert sum(holder["peak_bytes"] for holder in holders) == device["peak_bytes"] - device["peak_unknown_bytes"]
assert sum(holder["allocated_bytes"] for holder in holders) == device["allocated_bytes"]
assert [event["asked_bytes"] for event in use["memory_refusals"]] == [16 << 20]
PYTHON
    fi
    "$marey" run -o plain.marey -- "$network" 1 >/dev/null 2>&1
    check "no allocation reports" 2 '^marey: memory: no allocation reports in this file' "$marey" memory plain.marey
else
    echo "no example program: captures are not read"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
