#!/usr/bin/env bash
# wheel_test.sh [WHEEL]: installs a wheel (default: the newest in dist/) into a new environment and uses it as users do.
#
# The environment is outside the source tree. Commands from the wheel run without the network, without compilers in PATH
# and without variables from this shell; only the C++ program at the end is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
source="$PWD"
wheel="${1:-$(find dist -name 'marey-*.whl' -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1 | cut -d' ' -f2-)}"
[ -f "$wheel" ] || { echo "wheel_test.sh: no wheel in dist/ (run make wheel)" >&2; exit 1; }
wheel="$(realpath "$wheel")"
# The interpreter that the wheel is for.
tag="$(basename "$wheel" | sed -E 's/^marey-[^-]+-cp3([0-9]+)-.*/3.\1/')"
python=""
for candidate in .venv/bin/python "build/env-$tag/bin/python" "python$tag"; do
    if [ "$("$candidate" -c 'import sys; print("3.%d" % sys.version_info[1])' 2>/dev/null)" = "$tag" ]; then
        python="$(realpath -s "$(command -v "$candidate")")"
        break
    fi
done
[ -n "$python" ] || { echo "wheel_test.sh: no Python $tag here for $(basename "$wheel")" >&2; exit 1; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAILED  $1" >&2
    [ ! -s "$work/log" ] || tail -n 30 "$work/log" >&2
    exit 1
}
user() {  # user COMMAND...: runs a command of the new environment; its output goes to the log too
    : >"$work/log"
    env -i PATH="$work/env/bin" HOME="$work" LANG=C.UTF-8 "$@" 2>&1 | tee "$work/log"
}
works() {  # works COMMAND...: the command succeeds
    user "$@" >/dev/null || fail "'$*' failed"
    echo "ok      ${*//$'\n'*/ ...}"
}
prints() {  # prints TEXT COMMAND...: the command succeeds and prints a line that matches
    local text="$1"
    shift
    works "$@"
    grep -qE "$text" "$work/log" || fail "'$*' does not print '$text'"
}

"$python" -m venv "$work/env" >"$work/log" 2>&1 || fail "cannot create an environment"
user "$work/env/bin/pip" install --no-index --no-deps "$wheel" >/dev/null || fail "pip cannot install $wheel"
echo "ok      pip install $(basename "$wheel")"
site="$("$work/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')"
version="$(sed -nE 's/^project\(marey VERSION ([0-9.]+).*/\1/p' "$source/CMakeLists.txt")"
info="$site/marey-$version.dist-info"

# Contents.
: >"$work/log"
for file in marey/bin/marey marey/lib/libmarey.so.0 marey/lib/libmarey_cuda.so marey/lib/libmarey_view.so marey/include/marey/marey.h \
        marey/lib/cmake/marey/mareyConfig.cmake marey/torch/observer marey/py.typed marey/__init__.pyi marey_pytest/__init__.py \
        "marey-$version.dist-info/licenses/LICENSE" "marey-$version.dist-info/licenses/third_party/nanobind.txt"; do
    [ -e "$site/$file" ] || fail "$file is missing"
done
[ -x "$site/marey/bin/marey" ] || fail "marey/bin/marey is not executable"
! find "$site" -name 'libmarey*' | grep -v '/marey/lib/' || fail "a second copy of libmarey"
grep -q '^Tag: .*-manylinux_2_' "$info/WHEEL" || fail "no manylinux tag in $info/WHEEL"
for name in zstd sqlite3 dw elf fmt; do
    library="$(find "$site/marey.libs" -name "lib$name-*.so*" -printf '%f')"
    [ -n "$library" ] || fail "lib$name is not in marey.libs"
    grep -qF "$library:" "$info/licenses/third_party/README.txt" || fail "no licence for $library"
done
sed -n 's/^License-File: //p' "$info/METADATA" | while read -r file; do
    [ -s "$info/licenses/$file" ] || fail "the licence $file is missing"
done
echo "ok      files and licences"

# Libraries: those of the system are only the ones that manylinux allows.
allowed='linux-(vdso|gate)|ld-linux|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+|z)\.so'
find "$site/marey" "$site/marey.libs" -type f -not -path '*/torch/observers/*' \( -name '*.so*' -o -path '*/bin/marey' \) | while read -r file; do
    env -i ldd "$file" >"$work/log" || fail "$file cannot be loaded"
    ! grep -vE "$allowed|=> $work/" "$work/log" | grep . || fail "$file uses libraries outside the wheel"
done
prints '^1$' python -c "
import ctypes, glob, marey
for path in glob.glob(marey.__path__[0] + '/lib/lib*.so*'):  # as NVTX, CUDA and Marey itself load them
    ctypes.CDLL(path)
print(len({line.split()[-1] for line in open('/proc/self/maps') if 'libmarey.so' in line}))"
prints 'loaded' python -c "
import ctypes, importlib.util  # without the extension: a program that is not linked with Marey
ctypes.CDLL(importlib.util.find_spec('marey').submodule_search_locations[0] + '/lib/libmarey.so.0')
print('loaded')"

# The quick start.
mkdir -p examples/python
cp "$source/examples/python/spell.py" .
cp spell.py examples/python
user "$work/env/bin/python" "$source/tools/readme_commands.py" --quick-start >/dev/null || fail "README's quick start"
echo "ok      README's quick start"
find . -maxdepth 1 -name 'spell.*' ! -name spell.py -delete  # its outputs: commands do not replace files
prints "^(marey )?$version" marey --version
prints 'Recording works here' marey doctor
prints 'ok +symbols .*elfutils' marey doctor
prints 'spell.py\(7\): distance' marey run -o spell.marey spell.py
prints 'spell.py\(7\): distance' marey report spell.marey
prints 'main' marey tree spell.marey
works marey compact spell.marey -o small.marey
prints 'spell.py\(7\): distance' marey report small.marey
works marey export spell.marey -o spell.json.gz
works marey export spell.marey -o spell.pftrace
prints 'spell.py\(7\): distance' marey report spell.json.gz
prints 'spell.py\(7\): distance' marey report spell.pftrace
prints 'make' python -c "
import marey
with marey.profile() as prof:
    with marey.record_function('make'):
        sorted(range(100000))
print(prof.key_averages().table(sort_by='cpu_time_total'))
assert marey.__version__ == '$version'"
prints "^$site/marey/lib/cmake/marey$" python -m marey --cmake-dir

# PyTorch's operators are recorded without a compiler, if the wheel has an observer for this version.
torch="$source/build/torch/bin/python"
if [ -d "$site/marey/torch/observers" ] && [ -x "$torch" ]; then
    prints 'aten::ones' /usr/bin/env PYTHONPATH="$site" CXX=none XDG_CACHE_HOME="$work/none" "$torch" -c "
import torch, marey.torch
with marey.torch.profile() as prof:
    torch.ones(3)
print(prof.key_averages().table())"
fi

# A C++ project that uses nothing but find_package(marey).
{
    cmake -S "$source/tests/consumer" -B "$work/consumer" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -Dmarey_DIR="$(user python -m marey --cmake-dir)" &&
        cmake --build "$work/consumer"
} >"$work/build.log" 2>&1 || { mv "$work/build.log" "$work/log"; fail "cannot build a C++ program with it"; }
works "$work/consumer/consumer"
prints 'ranges' marey run -o consumer.marey -- "$work/consumer/consumer"
prints 'parse' marey report consumer.marey

# Uninstalling leaves nothing.
user pip uninstall -y marey >/dev/null || fail "pip cannot uninstall the package"
! find "$work/env" -iname '*marey*' | grep . || fail "pip uninstall leaves files"
echo "ok      pip uninstall marey"
echo "wheel_test: all passed ($(basename "$wheel"))"
