#!/usr/bin/env bash
# hostile.sh: files made to harm their reader: names that control the terminal, look like others or are formulas, and
# compressed data that expands without end. Needs MAREY_BIN, and python3 to make the files.
. "$(dirname "$0")/check.bash"
command -v python3 >/dev/null || {
    echo "no python3: the files cannot be made"
    exit 0
}

# ---- names

python3 - <<'PY'
import json
bad = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202egpj.exe\u200b\r\x7f"
def event(**members):
    return {"pid": 1, "tid": 1, "cat": bad} | members
events = [
    event(ph="M", name="process_name", args={"name": bad}),
    event(ph="M", name="thread_name", args={"name": bad}),
    event(ph="X", name=bad, ts=0, dur=90, args={bad: bad, "stack": bad, "External id": 1, "Input Dims": [[2]]}),
    event(ph="X", name="ProfilerStep#1", ts=0, dur=80),
    event(ph="X", name="=1+1", ts=1, dur=9),
    event(ph="X", name="'@x", ts=12, dur=9),
    event(ph="X", name=bad + "kernel", ts=20, dur=5, cat="kernel", args={"device": 0, "stream": 7, "External id": 1}),
    event(ph="C", name=bad, ts=3, args={bad: 1}),
    event(ph="i", name="[memory]", ts=4, s="t", args={"Total Reserved": 4, "Bytes": 4, "Addr": 1, "Device Type": 0, "Device Id": -1}),
    event(ph="Q", name=bad, ts=5),
]
json.dump({"traceEvents": events, bad: bad}, open("bad.json", "w"))
PY
"$marey" export bad.json -o bad.marey 2>/dev/null || fail "export"

# clean NAME COMMAND...: keeps the output for the check below.
clean() {
    echo "== $1" >>outputs.txt
    shift
    "$@" >output.txt 2>&1 </dev/null
    [ -s output.txt ] || fail "no output: $*"
    cat output.txt >>outputs.txt
}
for file in bad.json bad.marey; do
    for format in table csv json markdown; do
        clean "report as $format" "$marey" report --format $format --by-thread $file
        clean "report of ranges as $format" "$marey" report --list --format $format $file
    done
    for options in "" --json --bottom-up "--by thread" --hot "--hot --json"; do
        # shellcheck disable=SC2086
        clean "tree $options" "$marey" tree $options $file
    done
    clean "stacks" "$marey" stacks $file
    clean "stacks by thread" "$marey" stacks --by thread $file
    for verb in info gpu memory steps validate; do
        clean "$verb" "$marey" $verb $file
        clean "$verb --json" "$marey" $verb --json $file
    done
    clean "an error" "$marey" tree --inside $'\e[31m\u202e' $file
done
# No control character except newline and tab, and nothing that reorders or hides text.
python3 - <<'PY' || fail "names control the terminal"
import sys, unicodedata
for output in open("outputs.txt", encoding="utf-8", newline="").read().split("== "):
    found = sorted({ascii(c) for c in output if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf")})
    if found:
        sys.exit(f"{output.splitlines()[0]}: {found}")
PY
"$marey" report --json bad.json | python3 -c '
import json, sys
names = [row["name"] for row in json.load(sys.stdin)["rows"]]
assert any(chr(0x202E) in name and chr(0x9B) in name for name in names), names' || fail "JSON keeps the names"

check "csv: a formula" 0 "^'=1\+1," "$marey" report --csv bad.json
check "csv: an apostrophe before a formula" 0 "^''@x," "$marey" report --csv bad.json
"$marey" export --to csv -o - bad.json >ranges.csv 2>/dev/null
grep -q "^[^,]*,*.*'=1+1" ranges.csv || fail "export: a formula" "$(cat ranges.csv)"
if command -v script >/dev/null; then
    script -qec "'$marey' export --to csv -o - bad.json" /dev/null >output.txt </dev/null
    grep -q 'standard output is a terminal' output.txt || fail "export: not to a terminal" "$(cat -v output.txt)"
fi

# ---- compressed data

python3 - <<'PY'
import gzip, zlib
event = b'{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":0},'
with gzip.open("events.json.gz", "wb", compresslevel=9) as file:
    file.write(b"[")
    for _ in range(25):
        file.write(event * 100_000)
with gzip.open("blanks.json.gz", "wb") as file:
    file.write(b"[")
    for _ in range(100):
        file.write(b" " * 1_000_000)
with gzip.open("packets.pftrace.gz", "wb") as file:
    file.write(b"\x0a\x02\x50\x01" * 64)
    for _ in range(100):
        file.write(b"\x0a\x00" * 500_000)
def field(tag, content):  # of a protobuf message; the content has 128 to 16,383 bytes
    return tag + bytes([len(content) & 0x7F | 0x80, len(content) >> 7]) + content
inner = zlib.compress(b"\x0a\x00" * 500_000, 9)
with open("nested.pftrace", "wb") as file:  # each of its packets is small enough
    file.write(b"\x0a\x02\x50\x01" * 64)
    file.write(field(b"\x0a", field(b"\x92\x03", inner)) * 100)
PY
if ! "$marey" info events.json.gz 2>&1 | grep -q 'without zlib'; then
    for file in events.json.gz blanks.json.gz packets.pftrace.gz nested.pftrace; do
        for verb in validate report; do
            check "$verb: $file" 2 "^marey: $file: .* expands to more than 64 MiB .* decompress it first" \
                "$marey" $verb $file
        done
    done
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
