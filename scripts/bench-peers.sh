#!/usr/bin/env bash
# Measures otlpprof beside async-profiler, whose library comes from Maven Central: scripts/bench-peers.sh [stacks]
#
#   stacks   how many stacks reach their root, by JDK, program and walker; wrong calls where the call tree is known
#
# Prints a table in Markdown. SAMPLES (200000) are taken of each side and cell; WALKERS (vm:vmx:dwarf:fp), PROGRAMS and
# JDKS (homes, separated by colons) choose the cells. The whole table takes hours.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# -le 1 && ${1:-stacks} == stacks ]] || {
    echo "usage: scripts/bench-peers.sh [stacks]" >&2
    exit 2
}
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

scripts/install-toolchain.sh rust cc jdk
scripts/install-jdks.sh >&2
ASYNC_PROFILER=$(scripts/fetch-async-profiler.sh)
export ASYNC_PROFILER
H2=$(scripts/fetch-h2.sh)
export H2
cargo build --release --locked </dev/null
export OTLPPROF=$target/release/libotlpprof.so OTLPPROF_COMMAND=$target/release/otlpprof
export CLASSES=$target/release/testprograms
export DDPROFTEST=$target/release/libddproftest.so DDPROFTEST_FP=$target/release/libddproftest-fp.so
if [[ -z ${JDKS:-} ]]; then
    JDKS=$(
        IFS=:
        jdks=("$PWD"/.cache/jdks/*)
        echo "${jdks[*]}"
    )
fi
export JDKS

echo "machine: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -1), Linux $(uname -r)" >&2
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)" >&2
cargo bench --locked --bench stacks </dev/null
