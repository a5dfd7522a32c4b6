#!/usr/bin/env bash
# Fetches libraries of Debian packages with their debug files, for tests and benchmarks, and prints their
# folder: libjvm.so, libjvm.debug (openjdk-17), libc.so, libc.debug, and the packages of the latter, libc.deb
# and libc-dbg.deb.
#
# Both files of a pair have one version and one build-id. They are kept in the cache, whatever
# version is the newest later. Needs Debian's apt and binutils, but not root: the lists of packages are read
# into a folder of their own, so that they are neither missing nor stale.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=$(scripts/cache-folder.sh)/debug-objects

fail() {
    echo "debug-objects: $*" >&2
    exit 1
}

build_id() {
    LC_ALL=C readelf -n "$1" 2>/dev/null | sed -n 's/^ *Build ID: //p' | head -n1
}

# Runs a command of apt with lists of its own.
apt() {
    "apt-$1" -o Acquire::Retries=3 -o Dir::State::Lists="$cache/lists" -o Dir::Cache="$cache/apt" "${@:2}"
}

# Fetches a library and its debug file: fetch NAME PACKAGE DEBUG-PACKAGE LIBRARY'S-NAME [keep]
# With keep, the packages are kept too.
fetch() {
    local work version id library debug
    if [ -f "$cache/$1.debug" ] && { [ -z "${5-}" ] || [ -f "$cache/$1-dbg.deb" ]; }; then
        return
    fi
    command -v apt-get >/dev/null || fail "apt-get was not found: $1 is fetched on Debian alone"
    if [ ! -d "$cache/lists" ]; then
        mkdir -p "$cache/lists/partial" "$cache/apt/archives/partial"
        # An update may fail in part and yet have read the lists that are needed.
        apt get -qq update >&2 2>/dev/null || true
    fi
    work=$(mktemp -d "$cache/fetch.XXXXXX")
    # The debug package may be a version behind: the newest version that both have.
    version=$(comm -12 <(versions "$2") <(versions "$3") | sort -V | tail -n1)
    [ -n "$version" ] || fail "no version of $2 has $3"
    (cd "$work" && apt get -qq download "$2=$version" "$3=$version" >&2 2>/dev/null) ||
        fail "apt-get cannot download $2 and $3 of version $version"
    for package in "$work"/*.deb; do
        dpkg-deb --extract "$package" "$work/files"
    done
    library=$(find "$work/files" -type f -name "$4" | head -n1)
    [ -n "$library" ] || fail "$2 of version $version has no $4"
    id=$(build_id "$library")
    debug=$work/files/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    [ -f "$debug" ] && [ "$(build_id "$debug")" = "$id" ] || fail "$3 has no debug file of build-id $id"
    if [ -n "${5-}" ]; then
        mv "$work/$2"_*.deb "$cache/$1.deb"
        mv "$work/$3"_*.deb "$cache/$1-dbg.deb"
    fi
    mv "$library" "$cache/$1.so"
    # The debug file is moved last: its presence says that both are there.
    mv "$debug" "$cache/$1.debug"
    rm -rf "$work"
}

versions() {
    apt cache madison "$1" 2>/dev/null | awk '{ print $3 }' | sort -u
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
fetch libjvm openjdk-17-jre-headless openjdk-17-dbg libjvm.so
fetch libc libc6 libc6-dbg libc.so.6 keep
rm -rf "$cache/lists" "$cache/apt"
echo "$cache"
