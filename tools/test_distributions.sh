#!/usr/bin/env bash
# test_distributions.sh [SUITE[=MIRROR]...]: builds Marey, runs its tests and the demo in minimal roots of other
# distributions (default: trixie and forky).
#
# Needs root and debootstrap. A root is build/distributions/SUITE: it is created once and keeps its packages and build
# folders, so a second run is quicker; delete it for a fresh one. Package sources, certificates and pip's index are those
# of this machine: the mirror is the one of its apt configuration, unless one is given (for a suite of another
# distribution: resolute=URL, with ubuntu-keyring installed). In each root the suite's own Python runs everything, and
# every other supported Python of the suite the tests of the package.
set -uo pipefail
cd "$(dirname "$0")/.."
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(trixie forky)
work="$PWD/build/distributions"
certificates=/etc/ssl/certs/ca-certificates.crt

fail() {
    echo "marey: $1" >&2
    exit 1
}
[ "$(id -u)" -eq 0 ] || fail "test-distributions needs root, for chroot and mounts"
command -v debootstrap >/dev/null || fail "debootstrap not found (apt-get install debootstrap)"

mounted=()
# shellcheck disable=SC2317  # called by trap
unmount() {
    local i
    for ((i = ${#mounted[@]} - 1; i >= 0; --i)); do umount "${mounted[i]}"; done
    mounted=()
}
trap unmount EXIT

settings=()  # variables for pip and TLS in the roots
for name in index-url extra-index-url trusted-host proxy; do
    value="$(python3 -m pip config get "global.$name" 2>/dev/null)" || continue
    case "$value" in "" | *file:*) continue ;; esac  # folders of this machine are not in the root
    settings+=("PIP_$(echo "$name" | tr a-z- A-Z_)=$value")
done
for name in http_proxy https_proxy no_proxy CMAKE_ARGS CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER; do
    [ -z "${!name:-}" ] || settings+=("$name=${!name}")
done
launcher="${CMAKE_CXX_COMPILER_LAUNCHER:-}"  # installed in the roots
settings+=(CCACHE_BASEDIR=/root/marey CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros)

inside() {  # inside ROOT COMMAND: runs a command in a root
    local root="$1"
    shift
    env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive JOBS="${JOBS:-$(nproc)}" "${settings[@]}" \
        SSL_CERT_FILE=/etc/ssl/host.crt PIP_CERT=/etc/ssl/host.crt REQUESTS_CA_BUNDLE=/etc/ssl/host.crt \
        chroot "$root" bash -c "$*"
}

create() {  # create ROOT SUITE MIRROR: a minimal root, if it is not there yet
    local root="$1" suite="$2" mirror="$3" script="/usr/share/debootstrap/scripts/$2"
    [ ! -e "$root/marey_created" ] || return 0
    rm -rf --one-file-system "$root"
    if [ ! -e "$script" ]; then  # newer than this debootstrap: the newest script of its distribution
        script=/usr/share/debootstrap/scripts/sid
        case "$mirror" in *ubuntu*) script=/usr/share/debootstrap/scripts/gutsy ;; esac
    fi
    local components=main
    case "$mirror" in *ubuntu*) components=main,universe ;; esac
    debootstrap --variant=minbase --components="$components" "$suite" "$root" "$mirror" "$script" &&
        touch "$root/marey_created"
}

enter() {  # enter ROOT: mounts what programs need, and copies this machine's network settings and the sources
    local root="$1"
    mkdir -p "$root/dev/pts" "$root/dev/shm" "$root/etc/ssl" "$root/root/marey"
    mount -t proc proc "$root/proc" && mounted+=("$root/proc")
    mount -t sysfs -o ro sysfs "$root/sys" && mounted+=("$root/sys")  # which clock the kernel trusts
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" && mounted+=("$root/dev/pts")
    mount -t tmpfs tmpfs "$root/dev/shm" && mounted+=("$root/dev/shm")
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    apt-config dump Acquire | grep -E '^Acquire::(Check-Valid-Until|Retries|[a-z]+::(Proxy|CaInfo))' \
        >"$root/etc/apt/apt.conf.d/99host"
    [ ! -e "$certificates" ] || cp "$certificates" "$root/etc/ssl/host.crt"
    find "$root/root/marey" -mindepth 1 -maxdepth 1 ! -name build ! -name .venv -exec rm -rf {} +  # moved files too
    git ls-files -co --exclude-standard -z | xargs -0 -n 500 sh -c 'for file; do [ ! -e "$file" ] || printf "%s\\0" "$file"; done' sh |
        tar --null -T - -cf - | tar -xf - -C "$root/root/marey"
}

failed=0
step() {  # step ROOT NAME COMMAND: runs a command in the sources of a root; one line says how it ended
    local log="$1.$2.log" start=$SECONDS
    if inside "$1" "cd /root/marey && $3" >"$log" 2>&1; then
        echo "ok      $(basename "$1") $2: $(tail -n 1 "$log") ($((SECONDS - start)) s)"
    else
        failed=1
        echo "FAILED  $(basename "$1") $2: $(grep -E ' passed, [0-9]+ failed' "$log" | tail -n 1) (log: $log)"
    fi
}

mkdir -p "$work"
for each in "${suites[@]}"; do
    suite="${each%%=*}"
    if [ "$suite" = "$each" ]; then
        # shellcheck disable=SC2016  # apt expands it
        mirror="$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1)"
        [ -n "$mirror" ] || fail "apt has no package source to take $suite from (give one: SUITES=$suite=URL)"
    else
        mirror="${each#*=}"
    fi
    root="$work/$suite"
    if ! create "$root" "$suite" "$mirror" >"$root.create.log" 2>&1; then
        failed=1
        echo "FAILED  $suite: debootstrap (log: $root.create.log)"
        continue
    fi
    enter "$root"
    step "$root" packages "apt-get update && apt-get install -y --no-install-recommends make git python3-dev python3-venv $launcher"
    step "$root" demo "make demo"
    step "$root" test "make test"
    own="$(inside "$root" "python3 -c 'import sys; print(\"3.%d\" % sys.version_info[1])'")"
    for minor in $(python3 -c 'import tools.supported_python as s
first, end = s.supported(open("pyproject.toml").read())
print(*range(first[1], end[1]))'); do
        version="3.$minor"
        if [ "$version" = "$own" ] || ! inside "$root" "apt-cache show python$version-dev" >/dev/null 2>&1; then continue; fi
        step "$root" "python$version" "apt-get install -y --no-install-recommends python$version-dev python$version-venv &&
            make test-python PYTHON=python$version"
    done
    unmount
done
exit "$failed"
