#!/usr/bin/env bash
# import.sh: every verb reads nvprof and Nsight Systems databases. Needs MAREY_BIN, and python3 or sqlite3 to create
# the samples.
samples=$(cd "$(dirname "$0")/../data/samples" && pwd)
. "$(dirname "$0")/check.bash"

# make_sample FILE SQL_FILE...
make_sample() {
    local file=$1
    shift
    if command -v python3 >/dev/null && python3 -c 'import sqlite3' 2>/dev/null; then
        cat "$@" | python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())' "$file"
    elif command -v sqlite3 >/dev/null; then
        cat "$@" | sqlite3 "$file"
    else
        echo "neither python3 nor sqlite3 found: nothing to import"
        exit 0
    fi
}

make_sample nvprof.sqlite "$samples/nvprof_schema.sql" "$samples/nvprof_rows.sql"
make_sample nsight.sqlite "$samples/nsight_schema.sql" "$samples/nsight_rows.sql"
if "$marey" report nvprof.sqlite 2>&1 | grep -q 'without SQLite'; then
    echo "built without SQLite: import not tested"
    exit 0
fi

check "nvprof: info" 0 '^process +77' "$marey" info nvprof.sqlite
check "nvprof: info: problems" 0 '^problem: Kernels were launched by cudaLaunch \(cbid 13\)' "$marey" info nvprof.sqlite
check "nvprof: report" 0 '  1 +500 ns  500 ns  gemm\(float\*, float\*, int\)$' "$marey" report nvprof.sqlite
check "nvprof: report: csv" 0 '^aten::mm,.*,200,' "$marey" report --csv nvprof.sqlite
check "nvprof: tree" 0 ' {4}aten::mm$' "$marey" tree nvprof.sqlite
check "nsight: info" 0 '^host +box' "$marey" info nsight.sqlite
check "nsight: info: problems" 0 '^problem: The table SCHED_EVENTS is not read: 3 rows' "$marey" info nsight.sqlite
check "nsight: report" 0 '^ *800 ns +37\.9% .* step$' "$marey" report nsight.sqlite
check "nsight: tree" 0 ' {6}cudaLaunchKernel$' "$marey" tree nsight.sqlite
for maker in nvprof nsight; do
    check "$maker: export" 0 "^$maker\.json: .* ranges" "$marey" export $maker.sqlite -o $maker.json
    "$marey" info --json $maker.sqlite >$maker.info || fail "$maker: info --json"
    if command -v python3 >/dev/null; then
        for file in $maker.json $maker.info; do
            check "$file: valid JSON" 0 '' python3 -c 'import json, sys; json.load(open(sys.argv[1], encoding="utf-8"))' $file
        done
    fi
done

check "kept as a capture" 0 '^kept\.marey: .* ranges' "$marey" export nvprof.sqlite -o kept.marey
check "kept as a capture: report" 0 '^aten::mm,.*,200,' "$marey" report --csv --from marey kept.marey
cp kept.marey before.marey
check "never over itself" 2 '^marey: kept\.marey: is the input file' "$marey" export --to marey kept.marey
cmp kept.marey before.marey || fail "never over itself: the file changed"

# ---- files that are not profiles

gzip -c nvprof.sqlite >nvprof.sqlite.gz
check "a compressed database" 2 '^marey: nvprof\.sqlite\.gz: the file is compressed; decompress it first' \
    "$marey" report nvprof.sqlite.gz
echo 'CREATE TABLE t(a);' >other.sql
make_sample other.sqlite other.sql
check "another program's database" 2 '^marey: other\.sqlite: not an nvprof or Nsight Systems database' "$marey" tree other.sqlite
head -c 5000 nsight.sqlite >cut.sqlite
check "a truncated database" 2 '^marey: cut\.sqlite: ' "$marey" info cut.sqlite
cat >twice.sql <<'SQL'
INSERT INTO CUPTI_ACTIVITY_KIND_MARKER(flags, timestamp, id, objectKind, objectId, name, domain) VALUES
    (2, 1, 1, 2, x'4D00000064000000', 1, 0);
SQL
make_sample twice.sqlite "$samples/nvprof_schema.sql" "$samples/nvprof_rows.sql" twice.sql
check "a repeated marker" 2 "^marey: twice\.sqlite: marker 1 \('forward'\) starts more than once" \
    "$marey" report twice.sqlite
[ -z "$(ls | grep -E -- '-(wal|shm|journal)$')" ] || fail "nothing is written beside a database" "$(ls)"

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
