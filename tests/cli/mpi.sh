#!/usr/bin/env bash
# mpi.sh: an MPI program with libmarey_mpi. Needs MAREY_BIN; runs only if MAREY_TEST_BIN_DIR has mpi_program.
. "$(dirname "$0")/check.bash"

program=${MAREY_TEST_BIN_DIR:-}/mpi_program
library=${MAREY_BUILD_DIR:-}/libmarey_mpi.so
if [ ! -x "$program" ] || [ ! -e "$library" ] || ! command -v mpirun >/dev/null; then
    echo "skipped: built without MPI"
    exit 0
fi
mpi=(env OMPI_MCA_rmaps_base_oversubscribe=1 mpirun -np 4 --oversubscribe --allow-run-as-root)
mkdir -p mpi && cd mpi && rm -f ./*.marey
plain=$("${mpi[@]}" "$program" 2>/dev/null)
check "the output is unchanged" 0 "^$plain\$" \
    "${mpi[@]}" "$marey" run -q -o app.marey -- env "LD_PRELOAD=$library" "$program"
[ "$(find . -name '*.marey' | wc -l)" = 4 ] || fail "one capture for each rank" "$(ls)"
# 5 steps: two all-reduces, of which each rank sees the one of its half, and a barrier; one broadcast.
check "collectives are matched" 0 '^collectives +21 matched$' "$marey" ranks .
check "the ranks" 0 '^ +3  ' "$marey" ranks .
check "one host" 0 '^clock +one host' "$marey" ranks .
first=$(find . -name '*.marey' | sort | head -n 1)
check "messages" 0 'MPI_Send' "$marey" report "$first"
check "waiting for messages" 0 'MPI_Wait' "$marey" report "$first"

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
