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
    command -v python3 >/dev/null || {
        echo "fetch-async-profiler: needs python3 (apt-get install python3)" >&2
        exit 1
    }
    jar=$(scripts/fetch-maven.sh "tools.profiler:async-profiler:$VERSION")
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$directory"
    python3 -m zipfile -e "$jar" "$work/jar"
    # Moved there whole.
    cp "$work/jar/$platform/libasyncProfiler.so" "$directory/.incoming"
    mv "$directory/.incoming" "$library"
fi
echo "$library"
