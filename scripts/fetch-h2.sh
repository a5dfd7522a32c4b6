#!/usr/bin/env bash
# Brings the H2 database from Maven Central to .cache/h2 and prints its path: a well-known program to profile.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VERSION=2.2.224
jar=$PWD/.cache/h2/h2-$VERSION.jar
if [ ! -f "$jar" ]; then
    command -v mvn >/dev/null || {
        echo "fetch-h2: needs mvn (apt-get install maven)" >&2
        exit 1
    }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mvn --quiet --batch-mode dependency:copy "-Dartifact=com.h2database:h2:$VERSION" "-DoutputDirectory=$work" \
        </dev/null >&2
    mkdir -p "${jar%/*}"
    # Moved there whole.
    cp "$work/h2-$VERSION.jar" "${jar%/*}/.incoming"
    mv "${jar%/*}/.incoming" "$jar"
fi
echo "$jar"
