#!/usr/bin/env bash
# files.sh: which files the command reads and writes: missing ones, existing ones, devices, pipes and links.
. "$(dirname "$0")/check.bash"

printf 'main;parse 30\nmain;load 20\n' >a.folded
printf 'main;parse 10\n' >b.folded
"$marey" export a.folded -o a.marey 2>/dev/null || fail "export"
"$marey" export b.folded -o b.marey 2>/dev/null || fail "export"

# A file that was asked for must exist, whatever else is given.
for verb in report info tree stacks view ranks "find 0123456789" "merge -o all.marey"; do
    # shellcheck disable=SC2086
    check "$verb: a missing file" 2 '^marey: nope\.marey: No such file' "$marey" $verb nope.marey a.marey
    # shellcheck disable=SC2086
    check "$verb: a missing second file" 2 '^marey: nope\.marey: No such file' "$marey" $verb a.marey nope.marey
done
[ ! -e all.marey ] || fail "merge: writes nothing if a file is missing"
check "report: --html takes no file" 2 '^marey: x\.html: No such file' "$marey" report --html x.html a.marey
[ ! -e x.html.html ] || fail "report: the name of an output is not an input"

# A file with defaults is valid, or an error; files of others are not read.
mkdir project
printf '[tool.marey.report]\nrows 5\n' >project/pyproject.toml
check "defaults: a syntax error" 2 'pyproject\.toml: line 2: expected KEY = VALUE' \
    sh -c "cd project && '$marey' report ../a.marey"
printf '[tool.other]\nrows 5\n' >project/pyproject.toml
check "defaults: a syntax error in a file without a section for Marey" 0 parse sh -c "cd project && '$marey' report ../a.marey"

# An existing file is replaced only with --force, by every verb that writes one.
replaces() {
    local name=$1
    shift
    echo precious >kept
    cp a.marey input.marey
    check "$name: an existing file stays" 2 '^marey: kept: already exists \(use --force to replace it\)' "$@" -o kept
    [ "$(cat kept)" = precious ] || fail "$name: changed an existing file without --force"
    check "$name: --force replaces it" 0 '' "$@" -o kept --force
    [ "$(head -c 8 kept)" != precious ] || fail "$name: --force did not replace the file"
    check "$name: the input stays" 2 '^marey: input\.marey: is the input file' "$@" -o input.marey --force
    cmp -s a.marey input.marey || fail "$name: replaced its input"
}
replaces export "$marey" export input.marey --to chrome
replaces stacks "$marey" stacks input.marey
replaces compact "$marey" compact input.marey
replaces redact "$marey" redact input.marey
replaces merge "$marey" merge input.marey b.marey
replaces symbolize "$marey" symbolize input.marey
replaces "report --html" "$marey" report --html input.marey
for default in "export a.marey" "report --html a.marey" "compact a.marey" "redact a.marey"; do
    # shellcheck disable=SC2086
    check "$default: the first time" 0 '' "$marey" $default
    # shellcheck disable=SC2086
    check "$default: the second time" 2 'already exists \(use --force' "$marey" $default
done

# Devices and pipes are written in place; a capture is never one of them.
mkfifo pipe
cat pipe >piped &
check "export: to a pipe" 0 '' "$marey" export a.marey --to chrome -o pipe
wait $!
grep -q traceEvents piped || fail "export: a pipe gets the output"
[ -p pipe ] || fail "export: replaced a pipe"
check "run: not into a pipe" 2 '^marey: pipe: a capture must be a regular file' "$marey" run --force -o pipe -- true
[ -p pipe ] || fail "run: replaced a pipe"
ln -s /dev/null null
check "run: not through a link to a device" 2 'null: a capture must be a regular file' "$marey" run --force -o null -- true
[ -L null ] || fail "run: replaced a link to a device"
check "export: to a device" 0 '' "$marey" export a.marey --to chrome -o null
[ -c /dev/null ] || fail "export: replaced a device"
mkdir folder
check "run: not over a folder" 2 'folder: cannot write: Is a directory' "$marey" run --force -o folder -- true

# Inputs end.
check "info: a device" 2 '^marey: /dev/zero: is a device' timeout 20 "$marey" info /dev/zero
check "report: a device as another format" 2 '^marey: /dev/zero: is a device' timeout 20 "$marey" report --from chrome /dev/zero
check "info: a pipe that nobody writes to" 2 '^marey: pipe: no program writes to this pipe' timeout 20 "$marey" info pipe
cat a.marey >pipe &
check "report: a pipe" 0 'parse' "$marey" report pipe
wait $!

# Links: one's own are followed, those of others are not. Only root can make a link of somebody else.
echo precious >target
ln -s target own
check "a link: the file that it leads to stays" 2 'own: already exists' "$marey" stacks a.marey -o own
check "a link: --force" 0 '' "$marey" stacks a.marey -o own --force
[ -L own ] || fail "a link stays a link"
grep -q 'main;parse' target || fail "a link leads to the output"
if [ "$(id -u)" = 0 ]; then
    echo precious >target
    ln -s target foreign
    chown -h 65534 foreign
    check "a link of another user" 2 'foreign: cannot write: .*belongs to another user' "$marey" stacks a.marey -o foreign --force
    check "run: a link of another user" 2 'foreign: cannot write: .*belongs to another user' "$marey" run --force -o foreign -- true
    [ "$(cat target)" = precious ] || fail "wrote through a link of another user"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
