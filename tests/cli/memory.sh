#!/usr/bin/env bash
# memory.sh: `kymo memory`, and what `kymo run` must record for it. Needs KYMO_BIN; with KYMO_BUILD_DIR holding examples/, a
# real capture is read.
. "$(dirname "$0")/check.bash"

check "help" 0 'Usage: kymo memory' "$kymo" memory --help
check "no file" 2 '^kymo: memory: FILE is required' "$kymo" memory
check "a missing file" 2 '^kymo: missing\.kymo: .*No such file' "$kymo" memory missing.kymo
check "wrong sort key" 2 "^kymo: memory: --sort: 'zzz' is none of" "$kymo" memory --sort zzz x.kymo
check "run passes on what to record" 0 ',memory=on,shapes=on,flops=on(,|$)' \
    "$kymo" run --memory --shapes --flops -- sh -c 'echo "$KYMO"'

network=${KYMO_BUILD_DIR:-}/examples/network
if [ -x "$network" ]; then
    check "run: with memory" 0 'allocation reports' "$kymo" run --memory --flops -o net.kymo -- "$network" 3
    check "the peak" 0 '^peak +[0-9.]+ KiB at .*; at most 8\.00 MiB reserved' "$kymo" memory net.kymo
    check "the device" 0 '^device +cpu$' "$kymo" memory net.kymo
    check "a refusal" 0 '^out of memory at .*: 16\.0 MiB asked for, .* held, 8\.00 MiB reserved, in load batch' \
        "$kymo" memory net.kymo
    check "who held it, by path" 0 '^step > forward > aten::relu +128 KiB +1 +384 KiB +3 ' "$kymo" memory net.kymo
    check "columns told apart" 0 ' at peak +peak count +taken +taken count +total +given back +kept +kept count$' \
        "$kymo" memory net.kymo
    check "by name" 0 '^aten::relu +128 KiB +1 +512 KiB +4 ' "$kymo" memory --by name net.kymo
    check "outside of all ranges" 0 '^\(outside of all ranges\) ' "$kymo" memory net.kymo
    check "the limit" 0 '^\.\.\. and [0-9]+ more rows \(--limit 0 shows all\)' "$kymo" memory --limit 1 net.kymo
    "$kymo" memory --limit 0 net.kymo | grep -q 'more row' && fail "--limit 0 shows all"
    first=$("$kymo" memory --sort total --by name net.kymo | grep -A1 '^name ' | tail -1)
    grep -q '^step ' <<<"$first" || fail "--sort total" "$first"
    if command -v python3 >/dev/null; then
        "$kymo" memory --json net.kymo >net.json || fail "--json"
        python3 - <<'PYTHON' || fail "--json holds what the table holds"
import json
(device,) = json.load(open("net.json", encoding="utf-8"))["devices"]
assert device["device"] == "cpu" and device["has_totals"] is True
assert device["allocations"] == device["frees"] > 0
assert device["start_bytes"] == device["end_bytes"] == device["kept_bytes"] == 0
assert sum(holder["peak_bytes"] for holder in device["holders"]) == device["peak_bytes"] - device["peak_unknown_bytes"]
assert sum(holder["allocated_bytes"] for holder in device["holders"]) == device["allocated_bytes"]
assert [event["asked_bytes"] for event in device["out_of_memory"]] == [16 << 20]
PYTHON
    fi
    "$kymo" run -o plain.kymo -- "$network" 1 >/dev/null 2>&1
    check "nothing was reported" 0 '^no allocation reports' "$kymo" memory plain.kymo
else
    echo "no example program: captures are not read"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
