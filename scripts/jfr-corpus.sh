#!/usr/bin/env bash
# Creates recordings for the parser's tests in the cache, and prints their folder. Existing recordings are
# kept.
#
#   NAME-default.jfr   the JDK's default settings            } of a JDK of each version in jdks/ of the cache;
#   NAME-rich.jfr      all events that go into profiles      } NAME is its folder there
#   NAME-killed.jfr    a chunk of a JVM that was killed      }
#   NAME-deep.jfr      several chunks, stacks of 512 frames,
#                      traced methods (25)                   }
#   scrubbed.jfr       NAME-deep.jfr of the newest JDK, without some of its events and one of its threads
#   disassembled_*.jfr NAME-deep.jfr of the newest JDK, cut into its chunks
#   async-profiler.jfr, async-profiler-both.jfr, async-profiler-chunks.jfr, async-profiler-sync.jfr,
#   datadog.jfr
#                      by these profilers (if Maven Central is reachable); both: samples of two clocks are
#                      events of one type; chunks: several chunks; sync: its chunks and the chunks of the
#                      JVM's own recorder in one file
#   chunks.jfr         concatenation of chunks.1.jfr to chunks.3.jfr, which come from several JVMs
set -euo pipefail
cd "$(dirname "$0")/.."

cache=$(scripts/cache-folder.sh)
# Recordings of other programs, settings or JDKs get another folder.
key=$(cat scripts/jfr-corpus.sh scripts/jfr-corpus.jfc java/testprograms/programs/Recorded*.java \
    "$cache"/jdks/*/release | cksum | cut -d ' ' -f 1)
readonly CORPUS=$cache/jfr-corpus-$key
readonly PROGRAMS=${CLASSES:-$PWD/${CARGO_TARGET_DIR:-target}/debug/testprograms}
readonly SECONDS_LONG=1
mkdir -p "$CORPUS"
# A recording is made once: a concurrent run must not replace what a test is reading.
exec 9>"$CORPUS/.lock"
flock 9

work=$(mktemp -d "$CORPUS/.making.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Moves a recording to its place when it is complete.
keep() {
    [ -s "$work/$1" ] || {
        echo "jfr-corpus: $1 was not written" >&2
        cat "$work/log" >&2
        exit 1
    }
    mv "$work/$1" "$CORPUS/$1"
}

# Whether a recording has a sample of running code, as far as the JDK here has a program that tells.
is_sampled() {
    [ ! -x "$jfr" ] || "$jfr" summary "$1" | grep -E '^ *jdk\.ExecutionSample +[1-9]' >/dev/null
}

record() {
    local name=$1 home=$2 settings=$3 attempt
    shift 3
    [ -f "$CORPUS/$name.jfr" ] && return
    echo "jfr-corpus: $name" >&2
    # On a busy machine the program may not run in any of the moments at which the JVM samples.
    for attempt in 1 2 3 4 5; do
        "$home/bin/java" -Xmx128m -XX:FlightRecorderOptions:maxchunksize=1m,stackdepth=512 \
            -XX:StartFlightRecording:"filename=$work/$name.jfr,settings=$settings" \
            -cp "$PROGRAMS" "$@" >"$work/log" 2>&1 </dev/null
        ! is_sampled "$work/$name.jfr" || break
        echo "jfr-corpus: $name has no sample after attempt $attempt" >&2
    done
    keep "$name.jfr"
}

# Keeps the last chunk in the repository of a JVM that was killed before finishing the chunk.
record_killed() {
    local name=$1 home=$2
    [ -f "$CORPUS/$name.jfr" ] && return
    echo "jfr-corpus: $name" >&2
    "$home/bin/java" -Xmx128m -XX:FlightRecorderOptions:repository="$work/$name" \
        -XX:StartFlightRecording:settings="$PWD/scripts/jfr-corpus.jfc" \
        -cp "$PROGRAMS" programs.Recorded 60 >"$work/log" 2>&1 </dev/null &
    local jvm=$! waited=0
    while [ $waited -lt 100 ] &&
        [ "$(find "$work/$name" -name '*.jfr' -size +200k 2>/dev/null | wc -l)" = 0 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    sleep 2
    kill -9 $jvm
    wait $jvm 2>/dev/null || true
    cp "$(find "$work/$name" -name '*.jfr' | sort | tail -n1)" "$work/$name.jfr"
    keep "$name.jfr"
}

# One JDK of each version; if there are several, the last.
declare -A homes
for home in "$cache"/jdks/*-*; do
    name=$(basename "$home")
    homes[${name%%-*}]=$home
done
jfr=${homes[25]}/bin/jfr
for home in "${homes[@]}"; do
    name=$(basename "$home")
    record "$name-default" "$home" default programs.Recorded $SECONDS_LONG
    record "$name-rich" "$home" "$PWD/scripts/jfr-corpus.jfc" programs.Recorded $SECONDS_LONG
    record "$name-deep" "$home" "$PWD/scripts/jfr-corpus.jfc" programs.RecordedInChunks 2
    # JDK 11 writes no part of a chunk before the chunk is finished.
    [ "${name%%-*}" = 11 ] || record_killed "$name-killed" "$home"
done

# Recordings that the JDK's own `jfr` command derives from a recording.
whole=$CORPUS/$(basename "${homes[25]}")-deep.jfr
if [ ! -f "$CORPUS/scrubbed.jfr" ] && [ -x "$jfr" ]; then
    echo "jfr-corpus: scrubbed" >&2
    "$jfr" scrub --exclude-events jdk.ActiveSetting,jdk.MethodTrace --exclude-threads main \
        "$whole" "$work/scrubbed.jfr" >"$work/log" 2>&1
    keep scrubbed.jfr
fi
if [ ! -f "$CORPUS/disassembled_0.jfr" ] && [ -x "$jfr" ]; then
    echo "jfr-corpus: disassembled" >&2
    cp "$whole" "$work/disassembled.jfr"
    "$jfr" disassemble --max-chunks 1 --output "$work" "$work/disassembled.jfr" >"$work/log" 2>&1
    # Keep the first part last: if it exists, all parts exist.
    for part in $(cd "$work" && ls -r disassembled_*.jfr); do
        keep "$part"
    done
fi

java=${homes[17]}/bin/java
record_by_async_profiler() {
    local name=$1 seconds=$2 options=$3 library
    [ ! -f "$CORPUS/$name.jfr" ] && library=$(scripts/fetch-async-profiler.sh) || return 0
    echo "jfr-corpus: $name" >&2
    "$java" "-agentpath:$library=start,event=ctimer,$options,file=$work/$name.jfr" \
        -cp "$PROGRAMS" programs.Recorded "$seconds" >"$work/log" 2>&1 </dev/null
    keep "$name.jfr"
}
record_by_async_profiler async-profiler $SECONDS_LONG interval=2ms,wall=20ms,alloc=200k,lock=100us
record_by_async_profiler async-profiler-both $SECONDS_LONG \
    interval=2ms,wall=20ms,nobatch,nativemem=64k,live,alloc=100k
# The shortest chunk time that async-profiler accepts.
record_by_async_profiler async-profiler-chunks 7 interval=20ms,alloc=2m,lock=1ms,chunktime=5
record_by_async_profiler async-profiler-sync $SECONDS_LONG interval=2ms,alloc=200k,lock=100us,jfrsync=default
if [ ! -f "$CORPUS/datadog.jfr" ] && jar=$(scripts/fetch-maven.sh com.datadoghq:ddprof:1.22.0); then
    echo "jfr-corpus: datadog" >&2
    command="start,cpu=2ms,wall=10ms,memory=65536:al,cstack=vm,jfr"
    command+=",attributes=traceid;rest_endpoint,file=$work/datadog.jfr"
    "$java" -cp "$PROGRAMS:$jar" programs.RecordedByDatadog "$command" $SECONDS_LONG \
        >"$work/log" 2>&1 </dev/null
    keep datadog.jfr
fi

if [ ! -f "$CORPUS/chunks.jfr" ]; then
    number=0
    for name in "${homes[@]}"; do
        case $number in 3) break ;; esac
        recording=$CORPUS/$(basename "$name")-default.jfr
        [ -f "$recording" ] || continue
        number=$((number + 1))
        cp "$recording" "$CORPUS/chunks.$number.jfr"
    done
    cat "$CORPUS"/chunks.[0-9].jfr >"$work/chunks.jfr"
    keep chunks.jfr
fi
echo "$CORPUS"
