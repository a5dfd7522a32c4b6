#!/usr/bin/env bash
# Runs the benchmarks and prints each figure: scripts/bench.sh [NAME]
#
#   size             bytes of the release library
#   startup          time that profiling adds to a program that prints one line, beside async-profiler
#   recording_start  time from the session's start to the start of the recording of `jfr`, beside
#                    `new Recording().start()`
#   storm            cost of each exception of a storm, by the sampled number and the depth of the throw
#   handler          nanoseconds for one sample in the signal handler, by depth
#   encode           throughput of the OTLP writers
#   unwind_compile   milliseconds and bytes of libjvm's unwind table
#   jfr              reading and converting recordings, beside the JDK's reader, JMC's, async-profiler's,
#                    jfrs, and jfrconv
#   flamegraph       time, memory and size of flame graph pages of large profiles, beside async-profiler's
#                    jfrconv; times of the pages in headless Chromium
#   symbolize        resolving addresses of libjvm, beside llvm-symbolizer, addr2line, blazesym and wholesym
#   symbolize-hour   an hour's messages with native frames in 20 objects, from indexes
#   hour             reports, pages, merges and exports of an hour's messages, beside Go's pprof
#   wall_sums        wall-clock sums of thousands of threads, beside the time that has passed
#   context          nanoseconds of setting a context, beside Datadog's java-profiler, and of reading it in a
#                    handler
#
# Contenders run alternately. Figures are medians with their spread. TURNS sets the number of rounds of
# startup and context. Measure on a quiet machine: the load average is printed with the figures. See
# docs/benchmarks.md.
#
# Programs with development dependencies are built in target/bench: these enable features of other
# dependencies, and in one folder each build would compile the library again for the other.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
names=(size startup recording_start storm handler encode unwind_compile jfr flamegraph symbolize
    symbolize-hour hour wall_sums context)
if [ $# -gt 0 ]; then
    case " ${names[*]} " in
    *" $1 "*) names=("$1") ;;
    *)
        echo "bench: no benchmark $1; the benchmarks are: ${names[*]}" >&2
        exit 2
        ;;
    esac
fi

scripts/install-toolchain.sh rust cc jdk
cargo build --release --locked </dev/null
testkit=$(scripts/build-testkit.sh)
export OTLPPROF=$target/release/libotlpprof.so CLASSES=$testkit/testprograms
export DDPROFTEST=$testkit/libddproftest.so

# Debian's aliases are symbolic links to the same directories.
javas=()
for home in /usr/lib/jvm/*; do
    [ ! -L "$home" ] && [ -x "$home/bin/java" ] && javas+=("$home/bin/java")
done
JAVAS=$(
    IFS=:
    echo "${JAVAS:-${javas[*]:-java}}"
)
export JAVAS
# Without budget and limit: the cost of a sample is measured at any number of samples.
export OTLPPROF_BUDGET=off OTLPPROF_LIMIT=off

echo "machine: $(nproc) CPUs," \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -1), Linux $(uname -r)"
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
    flamegraph)
        JAVA=${JAVAS%%:*} scripts/bench-flamegraph.sh
        continue
        ;;
    symbolize)
        scripts/bench-symbolize.sh
        continue
        ;;
    symbolize-hour)
        scripts/bench-symbolize-hour.sh
        continue
        ;;
    hour)
        scripts/bench-hour.sh
        continue
        ;;
    context)
        for java in ${JAVAS//:/ }; do
            echo "context, $java"
            API=$testkit/api JAVA=$java scripts/bench-context.sh
        done
        name=context_read
        ;;
    esac
    cargo bench --locked --target-dir "$target/bench" --bench "$name" </dev/null
done
echo "load average: $(cut -d' ' -f1-3 /proc/loadavg)"
