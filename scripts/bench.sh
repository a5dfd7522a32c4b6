#!/usr/bin/env bash
# Runs the benchmarks and prints each figure: scripts/bench.sh [NAME]
#
#   size             bytes of the release library
#   startup          what profiling adds to a program that prints one line, beside async-profiler
#   recording_start  how long after the session the recording of `jfr` begins, beside `new Recording().start()`
#   storm            what each exception of a storm costs, by how many are sampled and how deep they are thrown
#   handler          nanoseconds of one sample, by depth
#   encode           throughput of the OTLP writers
#   unwind_compile   milliseconds and bytes of libjvm's unwind table
#   jfr              recordings read and converted, beside the JDK's reader, JMC's, async-profiler's, jfrs, and jfrconv
#   context          nanoseconds of a context's setters, beside Datadog's java-profiler, and of its read in a handler
#
# Contenders take turns; figures are medians with their spread. TURNS sets how many turns startup and context take.
# Measure on a quiet machine: the load average is printed with the figures. docs/benchmarks.md says more.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
names=(size startup recording_start storm handler encode unwind_compile jfr context)
if [ $# -gt 0 ]; then
    case " ${names[*]} " in
    *" $1 "*) names=("$1") ;;
    *)
        echo "bench: no benchmark $1; there are: ${names[*]}" >&2
        exit 2
        ;;
    esac
fi

scripts/install-toolchain.sh rust cc jdk
cargo build --release --locked </dev/null
export OTLPPROF=$target/release/libotlpprof.so CLASSES=$target/release/testprograms
export DDPROFTEST=$target/release/libddproftest.so

# Debian's aliases are links to the same directories.
javas=()
for home in /usr/lib/jvm/*; do
    [ ! -L "$home" ] && [ -x "$home/bin/java" ] && javas+=("$home/bin/java")
done
JAVAS=$(
    IFS=:
    echo "${JAVAS:-${javas[*]:-java}}"
)
export JAVAS
# What is measured is what a sample costs, however many there are.
export OTLPPROF_BUDGET=off OTLPPROF_LIMIT=off

echo "machine: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -1), Linux $(uname -r)"
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)"
for name in "${names[@]}"; do
    case $name in
    size)
        bytes=$(stat -Lc %s "$OTLPPROF")
        echo "size: libotlpprof.so $bytes bytes (goal: at most 3145728)"
        continue
        ;;
    startup)
        if peer=$(scripts/fetch-async-profiler.sh); then
            export ASYNC_PROFILER=$peer
        fi
        ;;
    jfr)
        JAVA=${JAVAS%%:*} scripts/bench-jfr.sh
        continue
        ;;
    context)
        for java in ${JAVAS//:/ }; do
            echo "context, $java"
            API=$target/release/api JAVA=$java scripts/bench-context.sh
        done
        name=context_read
        ;;
    esac
    cargo bench --locked --bench "$name" </dev/null
done
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)"
