# check.bash: sourced by every test of the command line: creates a temporary folder, defines fail and check.
set -u

marey=${MAREY_BIN:?MAREY_BIN is not set}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
unset MAREY NO_COLOR
failures=0

fail() {
    echo "FAILED: $1"
    shift
    printf '    %s\n' "$@"
    failures=$((failures + 1))
}

# check NAME EXPECTED_CODE PATTERN COMMAND...: checks the exit code, and that stdout and stderr together match an
# extended regular expression.
check() {
    local name=$1 code=$2 pattern=$3 output actual
    shift 3
    output=$("$@" 2>&1 </dev/null)
    actual=$?
    [ "$actual" = "$code" ] || fail "$name" "exit code $actual, not $code" "$output"
    grep -Eq -- "$pattern" <<<"$output" || fail "$name" "no '$pattern' in:" "$output"
}
