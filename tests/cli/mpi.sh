#!/usr/bin/env bash
# mpi.sh: an MPI program with libmarey_mpi. Needs MAREY_BIN; runs only if MAREY_TEST_BIN_DIR has mpi_program.
. "$(dirname "$0")/check.bash"

program=${MAREY_TEST_BIN_DIR:-}/mpi_program
library=${MAREY_BUILD_DIR:-}/libmarey_mpi.so
if [ ! -x "$program" ] || [ ! -e "$library" ] || ! command -v mpirun >/dev/null; then
    echo "skipped: built without MPI"
    exit 0
fi
if [ -n "${MAREY_TEST_SANITIZER:-}" ]; then
    echo "skipped: the sanitizer's library must come first"
    exit 0
fi
mpi=(env OMPI_MCA_rmaps_base_oversubscribe=1 mpirun -np 8 --oversubscribe --allow-run-as-root)
mkdir -p mpi && cd mpi || exit 1
plain=$("${mpi[@]}" "$program" 2>/dev/null)
[ "$plain" = "sum 240" ] || fail "the program works without Marey" "$plain"

# ---- one run for all ranks
check "the output of one run is unchanged" 0 "^$plain\$" \
    "$marey" run -q -o job.marey -- "${mpi[@]}" env "LD_PRELOAD=$library" "$program"
[ "$(find . -name '*.marey')" = ./job.marey ] || fail "a run leaves one file" "$(ls)"
rows=$("$marey" report --csv --by process job.marey | grep -c mpi_program)
[ "$rows" = 8 ] || fail "the file contains all ranks" "$rows" "$("$marey" info job.marey)"
check "a rank of the run" 0 'MPI_Barrier' "$marey" report --rank 7 job.marey
check "a rank that is not there" 2 'has no process of rank 8 ' "$marey" report --rank 8 job.marey
check "collectives of the run are matched" 0 '^collectives +21 matched$' "$marey" ranks job.marey
"${mpi[@]}" "$program" 3 >/dev/null 2>&1
check "the exit code of mpirun" $? '^sum 240' \
    "$marey" run -q -o failed.marey -- "${mpi[@]}" env "LD_PRELOAD=$library" "$program" 3
rm -f ./*.marey

# ---- a run for each rank
check "the output is unchanged" 0 "^$plain\$" \
    "${mpi[@]}" "$marey" run -q -o app.marey -- env "LD_PRELOAD=$library" "$program"
[ "$(find . -name '*.marey' | wc -l)" = 8 ] || fail "one capture for each rank" "$(ls)"
# 5 steps: two all-reduces, of which each rank sees the one of its half, and a barrier; one broadcast.
check "collectives are matched" 0 '^collectives +21 matched$' "$marey" ranks .
check "the ranks" 0 '^ +7  ' "$marey" ranks .
check "one host" 0 '^clock +one host' "$marey" ranks .
first=$(find . -name '*.marey' | sort | head -n 1)
check "the ranks are one trace" 0 '^all\.marey: 8 processes, ' "$marey" merge -o all.marey ./app*.marey
check "messages" 0 'MPI_Send' "$marey" report "$first"
check "waiting for messages" 0 'MPI_Wait' "$marey" report "$first"

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
