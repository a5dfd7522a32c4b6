#!/usr/bin/env bash
# Brings jars from Maven Central to .cache/maven and prints their class path: scripts/fetch-maven.sh GROUP:NAME:VERSION...
set -euo pipefail
cd "$(dirname "$0")/.."

cache=$PWD/.cache/maven
mkdir -p "$cache"
jars=()
for artifact in "$@"; do
    IFS=: read -r _ name version <<<"$artifact"
    jar=$name-$version.jar
    jars+=("$cache/$jar")
    [ -f "$cache/$jar" ] && continue
    command -v mvn >/dev/null || {
        echo "fetch-maven: needs mvn (apt-get install maven)" >&2
        exit 1
    }
    work=$(mktemp -d "$cache/.incoming.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mvn --quiet --batch-mode dependency:copy "-Dartifact=$artifact" "-DoutputDirectory=$work" </dev/null >&2
    # Moved there whole.
    mv "$work/$jar" "$cache/$jar"
    rm -rf "$work"
done
IFS=:
echo "${jars[*]}"
