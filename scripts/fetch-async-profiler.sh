#!/usr/bin/env bash
# Brings async-profiler's library from Maven Central to .cache/async-profiler and prints its path. The benchmarks
# compare with it; nothing else needs it.
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
directory=$PWD/.cache/async-profiler
library=$directory/libasyncProfiler-$VERSION-$platform.so
if [ ! -f "$library" ]; then
    for program in mvn python3; do
        command -v $program >/dev/null || {
            echo "fetch-async-profiler: needs $program (apt-get install maven python3)" >&2
            exit 1
        }
    done
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mvn --quiet --batch-mode dependency:copy "-Dartifact=tools.profiler:async-profiler:$VERSION" \
        "-DoutputDirectory=$work" </dev/null >&2
    mkdir -p "$directory"
    python3 -m zipfile -e "$work/async-profiler-$VERSION.jar" "$work/jar"
    # Moved there whole.
    cp "$work/jar/$platform/libasyncProfiler.so" "$directory/.incoming"
    mv "$directory/.incoming" "$library"
fi
echo "$library"
