#!/usr/bin/env bash
# Fetches async-profiler's library from Maven Central into the cache and prints its path. Only the
# benchmarks need it, for comparisons.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VERSION=4.6
case $(uname -m) in
x86_64) platform=linux-x64 ;;
aarch64) platform=linux-arm64 ;;
*)
    echo "fetch-async-profiler: no library for $(uname -m)" >&2
    exit 1
    ;;
esac
directory=$(scripts/cache-folder.sh)/async-profiler
library=$directory/libasyncProfiler-$VERSION-$platform.so
if [ ! -f "$library" ]; then
    command -v python3 >/dev/null || {
        echo "fetch-async-profiler: needs python3 (apt-get install python3)" >&2
        exit 1
    }
    jar=$(scripts/fetch-maven.sh "tools.profiler:async-profiler:$VERSION")
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$directory"
    exec 9>"$directory/.lock"
    flock 9
    python3 -m zipfile -e "$jar" "$work/jar"
    # Move the complete file into place, so that no reader sees a partial one.
    cp "$work/jar/$platform/libasyncProfiler.so" "$directory/.incoming"
    mv "$directory/.incoming" "$library"
fi
echo "$library"
