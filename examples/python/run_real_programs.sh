#!/usr/bin/env bash
# run_real_programs.sh: runs unmodified programs under `marey run` and writes their reports to examples/python/reports.
# Usage: run_real_programs.sh [PYTHON]. PYTHON is an interpreter with the package marey (pip install .). The other
# packages are installed into a separate environment in build/examples-python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${1:-$root/.venv/bin/python}
work=$root/build/examples-python
reports=${REPORTS:-$here/reports}
mkdir -p "$work" "$reports"

# The folder in which PYTHON has the package marey.
package=$("$python" -c 'import marey, os; print(os.path.dirname(os.path.dirname(marey.__file__)))')
if [ ! -x "$work/venv/bin/pytest" ]; then
    "$python" -m venv "$work/venv"
    "$work/venv/bin/pip" -q install flask pytest pytest-xdist numpy 2>/dev/null
fi
"$work/venv/bin/pip" -q download --no-deps --dest "$work/wheels" itsdangerous 2>/dev/null
linked=$work/linked # only marey, without the other packages next to it
mkdir -p "$linked" && ln -sfn "$package/marey" "$linked/marey"
export PYTHONPATH=$linked PYTHONDONTWRITEBYTECODE=1 COLUMNS=110 PIP_CONFIG_FILE=/dev/null
run() { "$work/venv/bin/python" -m marey "$@"; }

# Removes paths and addresses of this machine from a report.
scrubbed() {
    grep -v '^Looking in ' | sed -E -e "s#$work#WORK#g" -e "s#$root#MAREY#g" -e 's#/[^ ]*/(lib/python3)#\1#g' -e 's#file://[^ ]*##g' \
        -e 's#https?://[^ ]*##g' -e 's#/tmp/[^ ]*#TMP#g' -e 's/[ \t]+$//'
}

# one NAME TITLE WORDS...: records a program, then prints the summary, the tables by function, package and process, and the tree.
one() {
    local name=$1 title=$2
    shift 2
    local folder=$work/$name
    rm -rf "$folder" && mkdir -p "$folder"
    {
        echo "# $title"
        echo "\$ marey run -o $name.marey $*"
        (cd "$folder" && run run -o "$name.marey" "$@" 2>&1)
        for verb in "report --limit 15" "report --by package --limit 8" "report --by process --limit 8" "tree --depth 6 --limit 20"; do
            echo
            echo "\$ marey $verb $name.marey"
            # shellcheck disable=SC2086
            (cd "$folder" && run $verb "$name.marey" 2>&1)
        done
    } | scrubbed >"$reports/$name.txt"
    echo "$reports/$name.txt"
}

wheel=$(find "$work/wheels" -name '*.whl' | head -1)
cp "$here"/*.py "$work" && rm -rf "$work/project" && cp -r "$here/project" "$work/project"
cd "$work"
one pip "pip installs a wheel into a folder" -m pip install --no-index --no-deps --disable-pip-version-check --target folder "$wheel"
one pytest "pytest with xdist, two workers" -m pytest -q -p no:cacheprovider -n 2 "$work/project"
one shop "a Flask server under load" "$work/shop.py" 50
one pool "a multiprocessing pool" "$work/pool.py" 20
one algebra "linear algebra with NumPy" "$work/algebra.py"
