#!/usr/bin/env bash
# process_tree.sh: the captures of several processes as one trace. Needs MAREY_BIN and the program tree_program in
# MAREY_TEST_BIN_DIR.
. "$(dirname "$0")/check.bash"
tree=${MAREY_TEST_BIN_DIR:?MAREY_TEST_BIN_DIR is not set}/tree_program

# count_of NAME FILE [OPTION]: how often a name occurs.
count_of() {
    "$marey" report --csv --columns name,count "$2" ${3:-} | sed -n "s/^$1,//p"
}

"$marey" run -q -o packed.marey -- "$tree" fork 3 10 || fail "fork: exit code"
[ "$(find . -name 'packed*')" = ./packed.marey ] || fail "a run leaves one file" "$(ls)"
[ "$(count_of work packed.marey)" = 30 ] || fail "the file contains all processes"
[ "$(wc -c <packed.marey)" -lt 8000 ] || fail "the file is small" "$(wc -c <packed.marey)"
check "a packed run is not packed again" 2 'packed\.marey: is packed already' "$marey" compact packed.marey
check "a session of a packed run" 0 ' parent$' "$marey" report --session 1 packed.marey
check "a session that a packed run lacks" 2 'packed\.marey: has no session 9' "$marey" report --session 9 packed.marey
"$marey" run -q --keep-captures -o fork.marey -- "$tree" fork 3 10 || fail "fork: exit code"
[ "$(count_of work fork.marey)" = 30 ] || fail "all processes of a run are one trace" "$(count_of work fork.marey)"
[ -z "$(count_of work fork.marey --alone)" ] || fail "--alone shows one process"
check "info shows the tree" 0 '^ *[0-9]+ +fork +12 ' "$marey" info fork.marey
check "report by process" 0 'tree_program \([0-9]+\)' "$marey" report --by process fork.marey
[ "$("$marey" report --csv --by process fork.marey | wc -l)" = 5 ] || fail "a row per process" \
    "$("$marey" report --csv --by process fork.marey)"

member=$(find . -name 'fork.*.marey' | sort | head -1)
[ "$(count_of work "$member")" = 30 ] || fail "any member of a run stands for the run"
mkdir folder && cp ./fork*.marey folder/
[ "$(count_of work folder)" = 30 ] || fail "a folder of captures"

child=$("$marey" info fork.marey | sed -n 's/^ *\([0-9]*\) *fork .*/\1/p' | head -1)
[ "$(count_of work fork.marey "--process $child")" = 10 ] || fail "--process" "$child"
check "a process that is not there" 2 'has no process 1 ' "$marey" report --process 1 fork.marey
check "a rank that is not there" 2 'has no process of rank 7 ' "$marey" report --rank 7 fork.marey

"$marey" run -q -o exec.marey -- "$tree" exec 5 || fail "exec: exit code"
check "exec" 0 '^ *[0-9]+ +exec +7 ' "$marey" info exec.marey
[ "$(count_of work exec.marey)" = 5 ] || fail "a program that replaced itself"
"$marey" info exec.marey | grep -q 'without closing' && fail "a program that was replaced has not crashed"
"$marey" run -q -o spawn.marey -- "$tree" spawn 2 5 || fail "spawn: exit code"
[ "$("$marey" info spawn.marey | grep -c ' spawn ')" = 3 ] || fail "spawn" "$("$marey" info spawn.marey)"
"$marey" run -q -o vfork.marey -- "$tree" vfork 2 5 || fail "vfork: exit code"
[ "$("$marey" info vfork.marey | grep -c ' spawn ')" = 3 ] || fail "vfork" "$("$marey" info vfork.marey)"
[ "$(count_of work vfork.marey)" = 10 ] || fail "vfork: the ranges of both children" "$(count_of work vfork.marey)"
[ "$(count_of spawner vfork.marey)" = 1 ] || fail "vfork: the parent's ranges" "$(count_of spawner vfork.marey)"
"$marey" run -q -o double.marey -- "$tree" double 4 || fail "double: exit code"
check "a double fork" 0 '^ *[0-9]+ +fork +6 ' "$marey" info double.marey

# ---- without marey run
MAREY=out=plain.marey "$tree" spawn 2 5 || fail "MAREY: exit code"
[ "$(count_of work plain.marey)" = 10 ] || fail "a run without marey run is a tree too" "$(ls)"

# ---- merge
check "files of two runs are refused" 2 'exec\.marey(: process [0-9]+)? are from different runs .*marey merge' \
    "$marey" report fork.marey exec.marey
check "and merged on request" 0 '^all\.marey: [0-9]+ processes, [0-9,]+ ranges in ' \
    "$marey" merge -o all.marey ./fork*.marey ./exec*.marey
[ "$(count_of work all.marey)" = 35 ] || fail "merge" "$(count_of work all.marey)"
check "an existing file stays" 2 '^marey: all\.marey: already exists' "$marey" merge -o all.marey fork.marey
check "no output" 2 'merge: -o FILE is missing' "$marey" merge fork.marey
echo text >text.marey
check "unreadable files are named" 0 'left out text\.marey: not a Marey capture' \
    "$marey" merge -o some.marey fork.marey text.marey fork.marey
check "and so are those given twice" 0 'left out fork\.marey: given twice' \
    "$marey" merge --force -o some.marey fork.marey text.marey fork.marey
rm text.marey
mkdir nothing
check "a folder without captures" 2 '^marey: nothing: contains no captures' "$marey" report nothing

# ---- one limit for all processes
if [ -w /dev/shm ]; then
    settings=$("$marey" run -q --keep-captures --max-bytes 4MB -o limit.marey -- \
        sh -c '"$0" fork 8 200000 && echo "$MAREY" && ls /dev/shm' "$tree") || fail "limit: exit code"
    id=$(sed -n 's/.*,tree=\([0-9a-f]*\).*/\1/p' <<<"$settings")
    grep -q "^marey-$id$" <<<"$settings" || fail "the processes of a run share memory" "$settings"
    bytes=$(cat ./limit*.marey | wc -c)
    [ "$bytes" -lt 10000000 ] || fail "the limit holds for all processes together" "$bytes bytes"
    check "it says so" 0 'size limit +4\.00 MiB, then stop; reached' "$marey" info limit.marey
    [ ! -e "/dev/shm/marey-$id" ] || fail "the run leaves nothing in shared memory"
fi

# ---- a child that is killed
"$marey" run -q -o kill.marey -- "$tree" kill 9 || fail "kill: exit code"
how='ended without closing the capture in doomed; how is unknown'
if [ "$(printf '6.15\n%s\n' "$(uname -r)" | sort -V | head -1)" = 6.15 ]; then
    how='died of SIGKILL in doomed'
    check "its end" 0 '^ *[0-9]+ +fork +[0-9]+ +SIGKILL ' "$marey" info kill.marey
fi
check "a killed child" 0 "Process [0-9]+ \(tree_program\) $how" "$marey" info kill.marey
check "a killed child's ranges" 0 'doomed \(1 unfinished\)' "$marey" report kill.marey

exit $((failures > 0))
