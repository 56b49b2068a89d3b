#!/usr/bin/env bash
# view.sh: `marey view`: its address, its page, its end. Needs MAREY_BIN.
corpus=$(cd "$(dirname "$0")/../data/corpus" && pwd)
. "$(dirname "$0")/check.bash"
unset BROWSER DISPLAY WAYLAND_DISPLAY

check "a missing file" 2 '^marey: missing\.marey: .*No such file' "$marey" view --no-browser missing.marey
echo "this is not a capture" >text.marey
check "not a trace" 2 '^marey: text\.marey: unknown file format' "$marey" view --no-browser text.marey
check "three runs" 2 '^marey: view: expected captures of one or two runs, got 3' \
    "$marey" view "$corpus/chrome/chrome.json" "$corpus/chrome/kineto.json" "$corpus/chrome/viztracer.json"
check "a port that is too large" 2 '^marey: view: invalid port 70000' "$marey" view --port 70000 "$corpus/chrome/chrome.json"

# start ARGUMENTS...: starts `marey view` and reads the address that it prints.
start() {
    coproc VIEW { exec "$marey" view "$@" 2>errors; }
    pid=$VIEW_PID
    read -r url <&"${VIEW[0]}" && read -r hint <&"${VIEW[0]}" || { echo "FAILED: no address" && exit 1; }
    port=${url#http://127.0.0.1:}
    port=${port%%/*}
    token=${url##*#token=}
}
# stop SIGNAL: ends it, and checks that it succeeds.
stop() {
    kill "-$1" "$pid"
    wait "$pid"
    code=$?
    [ $code = 0 ] || fail "ends with 0 after $1" "exit code $code" "$(cat errors)"
}
# ask PATH HEADER...: the answer to a request.
ask() {
    local path=$1
    shift
    exec {socket}<>"/dev/tcp/127.0.0.1/$port" || return
    { printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1:%s\r\n' "$path" "$port"; printf '%s\r\n' "$@" ''; } >&"$socket"
    cat <&"$socket"
    exec {socket}>&-
}

start --no-browser "$corpus/chrome/chrome.json"
[[ $url =~ ^http://127\.0\.0\.1:[0-9]+/#token=[0-9a-f]{32}$ ]] || fail "prints its address" "$url"
[[ $hint =~ ssh\ -L\ $port:127\.0\.0\.1:$port ]] || fail "prints the ssh command" "$hint"
ask / | grep -aq 'text/html' || fail "serves the page" "$(ask / | head -c 500)"
ask /api/outline | grep -aq '^HTTP/1.1 403 ' || fail "needs the token"
ask /api/outline "Marey-Token: $token" | grep -aq '"file":".*chrome.json"' || fail "serves the outline"
# answers NAME CODE REQUEST_LINE HEADER...: the status of a request, sent over a socket as it is.
answers() {
    local name=$1 code=$2
    shift 2
    exec {socket}<>"/dev/tcp/127.0.0.1/$port" || return
    printf '%s\r\n' "$@" '' >&"$socket"
    answer=$(head -1 <&"$socket" | tr -d '\r')
    exec {socket}>&-
    [[ $answer == "HTTP/1.1 $code "* ]] || fail "$name" "$answer"
}
get='GET /api/outline HTTP/1.0' host="Host: 127.0.0.1:$port" secret="Marey-Token: $token"
answers "the page's own request" 200 "$get" "$host" "$secret"
answers "a request through ssh -L" 200 "$get" "Host: localhost:8123" "Origin: http://localhost:8123" "$secret" "Sec-Fetch-Site: same-origin"
answers "no host" 403 "$get" "$secret"
answers "another host" 403 "$get" "Host: example.com:$port" "$secret"
answers "another origin" 403 "$get" "$host" "Origin: http://example.com" "$secret"
answers "another port's page" 403 "$get" "$host" "Origin: http://127.0.0.1:1" "$secret"
answers "another site" 403 "$get" "$host" "$secret" "Sec-Fetch-Site: cross-site"
answers "a wrong token" 403 "$get" "$host" "Marey-Token: ${token%?}x"
answers "the token in the address" 403 "GET /api/outline?token=$token HTTP/1.0" "$host"
answers "another method" 405 "POST /api/outline HTTP/1.0" "$host" "$secret"
answers "a body" 400 "$get" "$host" "$secret" "Content-Length: 3"
check "port in use" 2 "^marey: cannot listen on port $port: it is in use$" \
    "$marey" view --no-browser --port "$port" "$corpus/chrome/chrome.json"
stop TERM

# The page's table of a selection is the report of the same span.
body() { sed '1,/^\r$/d'; }
start --no-browser "$corpus/chrome/kineto.json"
until ask /api/outline "Marey-Token: $token" | grep -aq '"state":"ready"'; do :; done
for span in "0 1000000" "200000 700000"; do
    set -- $span
    ask "/api/table?begin=$1&end=$2" "Marey-Token: $token" | body >table.json
    "$marey" report --json --begin "$1ns" --end "$2ns" "$corpus/chrome/kineto.json" >report.json
    cmp -s table.json report.json || fail "the table of a selection equals the report, $span" "$(diff table.json report.json | head -5)"
    [ "$(wc -l <report.json)" -gt 5 ] || fail "the selection is not empty, $span"
done
stop TERM
check "a time without a unit" 2 "^marey: invalid time '5' for --begin: expected a number with a unit" \
    "$marey" report --begin 5 "$corpus/chrome/kineto.json"
check "an end before the begin" 2 '^marey: --end 1us is before --begin 2us' \
    "$marey" report --begin 2us --end 1us "$corpus/chrome/kineto.json"

start "$corpus/chrome/chrome.json" "$corpus/chrome/kineto.json"
[ "$(cat errors)" = "marey: no browser found: open the address yourself" ] || fail "without a browser" "$(cat errors)"
ask /api/outline "Marey-Token: $token" | grep -aq 'chrome.json.*kineto.json' || fail "shows two traces"
stop INT

# A file that is deleted while it is viewed: the trace stays, and reading it again says what is wrong.
cp "$corpus/chrome/kineto.json" deleted.json
start --no-browser deleted.json
until ask /api/outline "Marey-Token: $token" | grep -aq '"state":"ready"'; do :; done
rm deleted.json
ask /api/reload "Marey-Token: $token" | grep -aq '"generation":2' || fail "a deleted file is read again"
while ask /api/outline "Marey-Token: $token" >outline && grep -aq '"state":"loading"' outline; do :; done
grep -aq '"state":"failed".*"error":"deleted.json: .*No such file' outline || fail "a deleted file is an error" "$(cat outline)"
ask /api/table "Marey-Token: $token" | grep -aq '"rows"' || fail "the trace of a deleted file is still shown"
stop TERM

cat >browser <<'SCRIPT'
#!/bin/sh
echo "$1" >"$OPENED"
SCRIPT
chmod +x browser && mkfifo opened
OPENED=$PWD/opened BROWSER=$PWD/browser start "$corpus/chrome/chrome.json"
read -r given <opened
[ "$given" = "$url" ] || fail "opens the address in the browser" "$given" "$url"
stop INT

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
