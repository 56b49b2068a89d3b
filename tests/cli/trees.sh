#!/usr/bin/env bash
# trees.sh: kymo tree, steps and stacks from outside, and the exports that go with them. Needs KYMO_BIN and, in KYMO_BUILD_DIR, examples/ to make a capture with.
. "$(dirname "$0")/check.bash"

# holds NAME EXPRESSION COMMAND...: the command prints JSON for which the Python expression over `d` is true.
holds() {
    local name=$1 expression=$2 output
    shift 2
    command -v python3 >/dev/null || return 0
    output=$("$@" | python3 -c "import json, sys; d = json.load(sys.stdin); assert $expression" 2>&1) ||
        fail "$name" "$output"
}

check "tree: hot and bottom-up" 2 '^kymo: tree: --hot and --bottom-up exclude' "$kymo" tree --hot --bottom-up x.kymo
check "tree: a step is a number" 2 "^kymo: tree: --step: 'x' is no number" "$kymo" tree --step x x.kymo
check "stacks: an unknown metric" 2 "^kymo: stacks: --metric: 'x' is none of self_cpu_time_total" \
    "$kymo" stacks --metric x x.kymo
check "stacks: a name alone" 2 '^kymo: stacks: --append-name goes with --torch' "$kymo" stacks --append-name x.kymo

program=${KYMO_BUILD_DIR:-}/examples/pipeline
if [ -n "${KYMO_BUILD_DIR:-}" ] && [ -x "$program" ]; then
    "$kymo" run -o p.kymo -- "$program" >/dev/null 2>&1 || fail "recording"

    check "tree" 0 '^ +total +share +self +count +name' "$kymo" tree p.kymo
    check "tree: bottom-up" 0 '%.*  parse_block$' "$kymo" tree --bottom-up --min-share 0 --limit 0 p.kymo
    check "tree: hot" 0 '^heaviest paths, by self time' "$kymo" tree --hot p.kymo
    check "tree: hot of threads" 0 '^hot path' "$kymo" tree --hot --by thread p.kymo
    check "tree: inside" 0 '100\.0%.* parse_block$' "$kymo" tree --inside parse_block p.kymo
    check "tree: inside nothing" 2 "^kymo: tree: no range is named 'zzz'" "$kymo" tree --inside zzz p.kymo
    check "tree: a range" 0 '100\.0%' "$kymo" tree --row 0 p.kymo
    check "tree: no such range" 2 '^kymo: tree: there is no range 4000000000' "$kymo" tree --row 4000000000 p.kymo
    check "tree: two places" 2 '^kymo: tree: of a name, .* only one can be looked inside' "$kymo" tree --row 0 --inside main p.kymo
    check "tree: no steps" 2 '^kymo: tree: there are no steps' "$kymo" tree --by-step p.kymo
    check "tree: no such step" 2 '^kymo: tree: there is no step 9999999' \
        "$kymo" tree --step 9999999 --step-name 'handle b*' p.kymo
    check "tree: a step" 0 ' 1  handle block \(step 3\)$' "$kymo" tree --step 3 --step-name 'handle b*' p.kymo
    check "tree: steps" 0 ' 1  handle block \(step [0-9]+\)$' "$kymo" tree --by-step --step-name 'handle block' p.kymo

    holds "tree: self times of the JSON add up" \
        'sum(n["self_ns"] for n in d["nodes"] if not n["is_async"]) == d["recorded_ns"]' "$kymo" tree --json p.kymo
    holds "tree: so do those of the names" 'sum(n["self_ns"] for n in d["nodes"] if not n["is_async"] and
        n["parent"] is None) == d["recorded_ns"]' "$kymo" tree --bottom-up --json p.kymo
    holds "tree: JSON of the hot path" 'd["hot_path"] and len(d["heaviest"]) == 2' \
        "$kymo" tree --hot --limit 2 --json p.kymo
    holds "tree: limits of the JSON" 'len(d["nodes"]) == 3' "$kymo" tree --limit 3 --json p.kymo

    check "steps: none" 2 '^kymo: steps: no range is of scope step or named ProfilerStep#n' "$kymo" steps p.kymo
    check "steps: none of that name" 2 "^kymo: steps: no range has a name like 'zzz'" "$kymo" steps --name zzz p.kymo
    check "steps" 0 '^duration +[0-9]+ ' "$kymo" steps --name 'make bl*' p.kymo
    check "steps: limit" 0 '^\.\.\. and [0-9]+ more steps' "$kymo" steps --name 'make block' --limit 2 p.kymo
    check "steps: the slow ones" 0 'other threads, meanwhile' "$kymo" steps --name 'make block' p.kymo
    holds "steps: JSON" 'len(d["steps"]) == d["durations"]["count"] == d["gaps"]["count"] + 1 and len(d["slowest"]) == 2' \
        "$kymo" steps --name 'make block' --slowest 2 --json p.kymo

    # stack_sum FILE: of the numbers at the ends of its lines.
    stack_sum() { awk '{ sum += $NF } END { printf "%.0f\n", sum }' "$1"; }
    check "stacks" 0 '^main;build_index;wait_for_room [0-9]+$' "$kymo" stacks p.kymo
    check "stacks: by thread" 0 '^parser;handle_block;parse_block [0-9]+$' "$kymo" stacks --by thread p.kymo
    "$kymo" stacks p.kymo -o out.folded || fail "stacks: to a file"
    "$kymo" export p.kymo -o p.folded 2>/dev/null || fail "export: folded"
    "$kymo" export p.kymo -o p.stacks.txt 2>/dev/null || fail "export: folded, by its other name"
    cmp out.folded p.folded && cmp out.folded p.stacks.txt || fail "export: folded is what stacks prints"
    holds "stacks: all the time is there" "d['recorded_ns'] == $(stack_sum out.folded)" "$kymo" tree --json p.kymo
    "$kymo" stacks --metric count p.kymo >counts
    holds "stacks: all ranges are there" "sum(n['count'] for n in d['nodes'] if not n['is_async']) == $(stack_sum counts)" \
        "$kymo" tree --json p.kymo
    check "export: speedscope" 0 '^p\.speedscope\.json: ' "$kymo" export --to speedscope p.kymo
    holds "export: speedscope has every range" \
        "sum(e['type'] == 'O' for p in d['profiles'] for e in p['events']) == $("$kymo" info --json p.kymo |
            grep -m1 -o '"ranges": [0-9]*' | tr -dc 0-9)" cat p.speedscope.json
    [ -z "$("$kymo" stacks --torch p.kymo 2>/dev/null)" ] || fail "stacks: no Python, no stacks of it"
    check "stacks: none, and why" 0 '^kymo: no stacks: no range with a stack of Python has any self_cpu_time_total$' \
        "$kymo" stacks --torch p.kymo
    check "stacks: none in a file" 0 '^kymo: no stacks: no range has any self_cuda_time_total$' \
        "$kymo" stacks --metric self_cuda_time_total -o none.folded p.kymo
    "$kymo" stacks p.kymo 2>&1 >/dev/null | grep -q 'no stacks' && fail "stacks: there are some"
    check "report: no stacks to group by" 0 '^kymo: no range has a call stack: --by-stack changes nothing$' \
        "$kymo" report --by-stack 3 p.kymo
    "$kymo" report --subtract-overhead p.kymo 2>&1 >/dev/null | grep -q '^kymo:' && fail "report: costs are known"
else
    echo "no example program: captures are not read"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
