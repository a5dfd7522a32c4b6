#!/usr/bin/env bash
# Prepares what benches/jfr.rs compares with, and runs it: scripts/bench-jfr.sh, called by scripts/bench.sh jfr
#
# JAVA is the JVM (default: java in PATH), whose javac compiles the reader. RECORDING is a large recording; without it one
# of the corpus is put behind itself until it has MEGABYTES (default: 100).
set -euo pipefail
cd "$(dirname "$0")/.."

export JAVA=${JAVA:-java}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${JAVA%java}javac" -d "$work" benches/jfr/ReadRecording.java
export CLASSES=$work
if jar=$(scripts/fetch-maven.sh tools.profiler:jfr-converter:4.5); then
    export JFR_CONVERTER=$jar
fi
if [ -z "${RECORDING:-}" ]; then
    # The test programs that the corpus is made by are beside the release build.
    corpus=$(CLASSES=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release/testprograms scripts/jfr-corpus.sh)
    one=$(find "$corpus" -name '17-*-rich.jfr' | head -n1)
    export RECORDING=$work/large.jfr
    while [ ! -f "$RECORDING" ] || [ "$(stat -c %s "$RECORDING")" -lt $((${MEGABYTES:-100} * 1000000)) ]; do
        cat "$one" >>"$RECORDING"
    done
fi
cargo bench --locked --bench jfr </dev/null
