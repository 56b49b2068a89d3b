#!/usr/bin/env bash
# trees.sh: marey tree, steps and stacks, and the related exports. Needs MAREY_BIN and, in MAREY_BUILD_DIR, examples/ to
# make a capture with.
. "$(dirname "$0")/check.bash"

# holds NAME EXPRESSION COMMAND...: checks that the Python expression over `d`, the JSON that the command prints, is true.
holds() {
    local name=$1 expression=$2 output
    shift 2
    command -v python3 >/dev/null || return 0
    output=$("$@" | python3 -c "import json, sys; d = json.load(sys.stdin); assert $expression" 2>&1) ||
        fail "$name" "$output"
}

check "tree: hot and bottom-up" 2 '^marey: tree: --hot and --bottom-up are mutually exclusive' "$marey" tree --hot --bottom-up x.marey
check "tree: a step is a number" 2 "^marey: tree: --step: invalid value 'x': expected a non-negative integer" "$marey" tree --step x x.marey
check "stacks: an unknown metric" 2 "^marey: stacks: --metric: invalid value 'x': expected one of self_cpu_time_total" \
    "$marey" stacks --metric x x.marey
check "stacks: a name alone" 2 '^marey: stacks: --append-name requires --torch' "$marey" stacks --append-name x.marey

program=${MAREY_BUILD_DIR:-}/examples/pipeline
if [ -n "${MAREY_BUILD_DIR:-}" ] && [ -x "$program" ]; then
    "$marey" run -o p.marey -- "$program" >/dev/null 2>&1 || fail "recording"

    check "tree" 0 '^ +total +share +self +count +name' "$marey" tree p.marey
    check "tree: bottom-up" 0 '%.*  parse_block$' "$marey" tree --bottom-up --min-share 0 --limit 0 p.marey
    check "tree: hot" 0 '^heaviest paths, by self time' "$marey" tree --hot p.marey
    check "tree: hot of threads" 0 '^hot path' "$marey" tree --hot --by thread p.marey
    check "tree: inside" 0 '100\.0%.* parse_block$' "$marey" tree --inside parse_block p.marey
    check "tree: inside nothing" 2 "^marey: tree: no range is named 'zzz'" "$marey" tree --inside zzz p.marey
    check "tree: a range" 0 '100\.0%' "$marey" tree --row 0 p.marey
    check "tree: no such range" 2 '^marey: tree: there is no range 4000000000' "$marey" tree --row 4000000000 p.marey
    check "tree: two places" 2 '^marey: tree: --inside, --row, --step and --by-step are mutually exclusive' "$marey" tree --row 0 --inside main p.marey
    check "tree: no steps" 2 '^marey: tree: there are no steps' "$marey" tree --by-step p.marey
    check "tree: no such step" 2 '^marey: tree: there is no step 9999999' \
        "$marey" tree --step 9999999 --step-name 'handle b*' p.marey
    check "tree: a step" 0 ' 1  handle block \(step 3\)$' "$marey" tree --step 3 --step-name 'handle b*' p.marey
    check "tree: steps" 0 ' 1  handle block \(step [0-9]+\)$' "$marey" tree --by-step --step-name 'handle block' p.marey

    holds "tree: self times of the JSON add up" \
        'sum(n["self_ns"] for n in d["tree"] if not n["is_async"]) == d["tree_totals"]["recorded_ns"]' "$marey" tree --json p.marey
    holds "tree: self times of the names add up" 'sum(n["self_ns"] for n in d["tree"] if not n["is_async"] and
        n["parent"] is None) == d["tree_totals"]["recorded_ns"]' "$marey" tree --bottom-up --json p.marey
    holds "tree: JSON of the hot path" 'd["hot_path"] and len(d["heaviest"]) == 2' \
        "$marey" tree --hot --limit 2 --json p.marey
    holds "tree: limits of the JSON" 'len(d["tree"]) == 3' "$marey" tree --limit 3 --json p.marey

    check "steps: none" 2 '^marey: steps: no range has scope step or is named ProfilerStep#n' "$marey" steps p.marey
    check "steps: none of that name" 2 "^marey: steps: no range has a name that matches 'zzz'" "$marey" steps --step-name zzz p.marey
    check "steps" 0 '^duration +[0-9]+ ' "$marey" steps --step-name 'make bl*' p.marey
    check "steps: the old name of an option" 0 '^marey: --name is now called --step-name$' \
        "$marey" steps --name 'make bl*' p.marey
    check "steps: columns" 0 '^ *duration +gap$' "$marey" steps --step-name 'make bl*' --columns duration_ns,gap_ns p.marey
    check "tree: columns" 0 '^ *count +name$' "$marey" tree --columns count,name p.marey
    check "tree: csv" 0 '^node,parent,depth,total_ns,' "$marey" tree --csv p.marey
    check "steps: limit" 0 '^\.\.\. and [0-9]+ more steps' "$marey" steps --step-name 'make block' --limit 2 p.marey
    check "steps: the slow ones" 0 'other threads at that time' "$marey" steps --step-name 'make block' p.marey
    holds "steps: JSON" '(len(d["steps"]) == d["step_statistics"][0]["count"] == d["step_statistics"][1]["count"] + 1 and
        len({n["range"] for n in d["step_differences"]}) == 2)' \
        "$marey" steps --step-name 'make block' --slowest 2 --json p.marey

    # stack_sum FILE: the sum of the numbers at the ends of its lines.
    stack_sum() { awk '{ sum += $NF } END { printf "%.0f\n", sum }' "$1"; }
    check "stacks" 0 '^main;build_index;wait_for_room [0-9]+$' "$marey" stacks p.marey
    check "stacks: by thread" 0 '^parser;handle_block;parse_block [0-9]+$' "$marey" stacks --by thread p.marey
    check "stacks: csv" 0 '^stack,value$' "$marey" stacks --csv p.marey
    check "stacks: sorted" 0 '^[0-9]+$' "$marey" stacks --sort value --limit 1 --columns value p.marey
    check "stacks: a file has them all" 2 '^marey: stacks: -o writes every stack' "$marey" stacks --limit 1 -o x.folded p.marey
    "$marey" stacks p.marey -o out.folded || fail "stacks: to a file"
    "$marey" export p.marey -o p.folded 2>/dev/null || fail "export: folded"
    "$marey" export p.marey -o p.stacks.txt 2>/dev/null || fail "export: folded, by its other name"
    cmp out.folded p.folded && cmp out.folded p.stacks.txt || fail "export: folded equals the output of stacks"
    holds "stacks: all the time is there" "d['tree_totals']['recorded_ns'] == $(stack_sum out.folded)" "$marey" tree --json p.marey
    "$marey" stacks --metric count p.marey >counts
    holds "stacks: all ranges are there" "sum(n['count'] for n in d['tree'] if not n['is_async']) == $(stack_sum counts)" \
        "$marey" tree --json p.marey
    check "export: speedscope" 0 '^p\.speedscope\.json: ' "$marey" export --to speedscope p.marey
    holds "export: speedscope has every range" \
        "sum(e['type'] == 'O' for p in d['profiles'] for e in p['events']) == $("$marey" info --json p.marey |
            grep -m1 -o '"ranges": [0-9]*' | tr -dc 0-9)" cat p.speedscope.json
    [ -z "$("$marey" stacks --torch p.marey 2>/dev/null)" ] || fail "stacks: without Python there are no Python stacks"
    check "stacks: none, and why" 0 '^marey: no stacks: no range with a Python stack has any self_cpu_time_total$' \
        "$marey" stacks --torch p.marey
    check "stacks: none in a file" 0 '^marey: no stacks: no range has any self_cuda_time_total$' \
        "$marey" stacks --metric self_cuda_time_total -o none.folded p.marey
    "$marey" stacks p.marey 2>&1 >/dev/null | grep -q 'no stacks' && fail "stacks: there are some"
    check "report: no stacks to group by" 0 '^marey: no range has a call stack: --by-stack has no effect$' \
        "$marey" report --by-stack 3 p.marey
    "$marey" report --subtract-overhead p.marey 2>&1 >/dev/null | grep -q '^marey:' && fail "report: costs are known"
else
    echo "no example program: captures are not read"
fi

# A tree of callers has up to 64 paths for each of the trace. A sanitizer needs more memory.
if command -v python3 >/dev/null && [ -z "${MAREY_TEST_SANITIZER:-}" ]; then
    python3 -c '
import json
n = 100_000
print(json.dumps([{"ph": "X", "name": f"f{i}", "pid": 1, "tid": 1, "ts": i, "dur": 2 * (n - i)} for i in range(n)]))
' >deep.json
    check "tree: bottom-up, 100,000 levels" 0 '100,000 ranges' sh -c "ulimit -v 700000; '$marey' tree --bottom-up deep.json"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
