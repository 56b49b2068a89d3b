#!/usr/bin/env bash
# install_deps.sh GROUP...: installs missing packages for the groups build, check, docs, fleet, fuzz, python, real, viewers, web, pictures.
#
# For Debian. Silent and fast if nothing is missing. It looks for commands and headers instead of querying dpkg, so that software
# installed another way counts. Without root, sudo or a network it lists the missing packages and fails only if the
# build needs them; CMake leaves out optional parts and prints a line for each.
set -uo pipefail

missing=()   # packages
required=()  # packages that the build cannot do without

need() {  # need PACKAGE: marks it as missing
    missing+=("$1")
}
have_command() {
    command -v "$1" >/dev/null 2>&1
}
cxx="${CXX:-c++}"
have_header() {
    printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | "$cxx" -std=c++20 -E -x c++ - >/dev/null 2>&1
}
can_link_fuzzers() {
    echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
        "$(command -v clang++-14 || echo clang++)" -x c++ - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null
}
# versioned NAME VERSION: the package of that version if the distribution has it, else the plain one.
versioned() {
    if apt-cache show "$1-$2" >/dev/null 2>&1; then echo "$1-$2"; else echo "$1"; fi
}

for group in "$@"; do
    case "$group" in
        build)
            have_command make || need make
            have_command cmake || { need cmake; required+=(cmake); }
            have_command ninja || need ninja-build
            if have_command "$cxx"; then
                have_header fmt/core.h || need libfmt-dev
                have_header CLI/CLI.hpp || need libcli11-dev
                have_header zstd.h || need libzstd-dev
                have_header zlib.h || need zlib1g-dev
                have_header sqlite3.h || need libsqlite3-dev
                have_header elfutils/libdw.h || need libdw-dev
                have_header protozero/pbf_writer.hpp || need libprotozero-dev
                have_header gtest/gtest.h || need libgtest-dev
            else
                need g++; required+=(g++)
                missing+=(libfmt-dev libcli11-dev libzstd-dev zlib1g-dev libgtest-dev libsqlite3-dev
                          libprotozero-dev libdw-dev)
            fi
            ;;
        real)  # leveldb's benchmark includes gmock
            have_header gmock/gmock.h || need libgmock-dev
            have_command dpkg-source || need dpkg-dev
            ;;
        check)
            have_command clang-format-14 || have_command clang-format || need "$(versioned clang-format 14)"
            have_command clang-tidy-14 || have_command clang-tidy || need "$(versioned clang-tidy 14)"
            have_command python3 || need python3
            ;;
        docs)  # an interpreter with the venv module, and the C++ standard headers, which libclang reads
            have_command python3 || { need python3; required+=(python3); }
            python3 -c 'import venv, ensurepip' 2>/dev/null || { need python3-venv; required+=(python3-venv); }
            have_command "$cxx" || { need g++; required+=(g++); }
            ;;
        fuzz)
            have_command clang++-14 || have_command clang++ || { need "$(versioned clang 14)"; required+=(clang); }
            # On Debian the libraries that fuzzers link are in a separate package.
            can_link_fuzzers || { need libclang-rt-14-dev; required+=(libclang-rt-14-dev); }
            ;;
        python)  # an interpreter with the venv module and the headers for building extensions
            python="${PYTHON:-python3}"
            if [ "$python" = off ] || [ "$python" = python3 ]; then
                have_command python3 || { need python3; required+=(python3); }
            fi
            if [ "$python" = python3 ]; then
                python3 -c 'import venv, ensurepip' 2>/dev/null || { need python3-venv; required+=(python3-venv); }
                header="$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)/Python.h"
                [ -e "$header" ] || { need python3-dev; required+=(python3-dev); }
            fi
            ;;
        viewers)
            have_command node || { need nodejs; required+=(nodejs); }
            have_command npm || { need npm; required+=(npm); }
            have_command chromium || have_command chromium-browser || have_command google-chrome ||
                { need chromium; required+=(chromium); }
            ;;
        web)
            have_command node || { need nodejs; required+=(nodejs); }
            have_command npm || { need npm; required+=(npm); }
            ;;
        fleet)  # Spark needs a Java runtime
            have_command java || { need default-jre-headless; required+=(default-jre-headless); }
            ;;
        pictures)
            have_command pngquant || need pngquant
            ;;
        *)
            echo "install_deps.sh: unknown group '$group' (expected build, check, docs, fleet, fuzz, python, viewers, web or pictures)" >&2
            exit 2
            ;;
    esac
done

[ ${#missing[@]} -eq 0 ] && exit 0

give_up() {
    echo "marey: $1; missing packages: ${missing[*]}" >&2
    if [ ${#required[@]} -gt 0 ]; then
        echo "marey: cannot continue without: ${required[*]}" >&2
        exit 1
    fi
    echo "marey: continuing without them" >&2
    exit 0
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    have_command sudo || give_up "cannot install packages: not root, and sudo not found"
    as_root=(sudo)
fi
have_command apt-get || give_up "cannot install packages: apt-get not found"

echo "marey: installing ${missing[*]}"
log="$(mktemp)"
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}
if ! { "${as_root[@]}" apt-get update && install; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    give_up "cannot install packages: apt-get failed"
fi
rm -f "$log"
