#!/usr/bin/env bash
# Measures otlpprof beside async-profiler, whose library comes from Maven Central:
# scripts/bench-peers.sh [NAME]
#
#   stacks   stacks that reach their root, by JDK, program and walker; wrong calls where the call tree is
#            known
#   cost     CPU time of a delivered sample, by depth, and the slowdown of a program
#   peer_handler
#            time in the signal handler, by depth
#   engines  CPU time that each engine adds to work of its kind, and bytes written
#   applications
#            stacks of real applications that reach their root (scripts/bench-applications.sh)
#   agreement
#            each method's share of the CPU time by both profilers, beside the share that the program was
#            built to spend
#
# stacks prints a table in Markdown, from SAMPLES (200000) samples of each profiler and cell. WALKERS
# (vm:vmx:dwarf:fp) and PROGRAMS select the cells. The whole table takes hours. TURNS (11; engines 7,
# agreement 8) is the number of rounds of the other measurements. WALKERS (vm) and PROGRAMS also apply to
# peer_handler and agreement. JDKS (homes, separated by colons) applies to all measurements; by default stacks
# uses every known JDK, and the others use the installed ones. ENGINES (wall:alloc:lock:nativemem) applies to
# engines.
set -euo pipefail
cd "$(dirname "$0")/.."

names=(stacks cost peer_handler engines agreement applications)
if [[ $# -gt 0 ]]; then
    [[ $# -eq 1 && " ${names[*]} " == *" $1 "* ]] || {
        echo "usage: scripts/bench-peers.sh [${names[*]}]" >&2
        exit 2
    }
    names=("$1")
fi
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

scripts/install-toolchain.sh rust cc jdk
scripts/install-jdks.sh >&2
ASYNC_PROFILER=$(scripts/fetch-async-profiler.sh)
export ASYNC_PROFILER
H2=$(scripts/fetch-maven.sh com.h2database:h2:2.2.224)
export H2
# Without budget and limit: the cost of a sample is measured at any number of samples.
export OTLPPROF_BUDGET=off OTLPPROF_LIMIT=off
cargo build --release --locked </dev/null
export OTLPPROF=$target/release/libotlpprof.so OTLPPROF_COMMAND=$target/release/otlpprof
testkit=$(scripts/build-testkit.sh)
export CLASSES=$testkit/testprograms HANDLER_TIMER=$testkit/libhandlertimer.so
export DDPROFTEST=$testkit/libddproftest.so DDPROFTEST_FP=$testkit/libddproftest-fp.so
all= installed=
for home in "$(scripts/cache-folder.sh)"/jdks/*; do
    all+=:$home
    [ ! -x "$home/bin/javac" ] || installed+=:$home
done

echo "machine: $(nproc) CPUs," \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -1), Linux $(uname -r)" >&2
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)" >&2
for name in "${names[@]}"; do
    case $name in
    stacks) default=$all ;;
    applications)
        scripts/bench-applications.sh
        continue
        ;;
    *) default=$installed ;;
    esac
    JDKS=${JDKS:-$default} cargo bench --locked --target-dir "$target/bench" --bench "$name" </dev/null
done
