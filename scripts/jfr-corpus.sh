#!/usr/bin/env bash
# Makes recordings for the tests of the parser, in .cache/jfr-corpus, and prints that path. What is there is kept.
#
#   NAME-default.jfr   the JDK's default settings            } of a JDK of each version in .cache/jdks;
#   NAME-rich.jfr      all that a profile is made of         } NAME is its folder there
#   NAME-killed.jfr    a chunk of a JVM that was killed      }
#   async-profiler.jfr, async-profiler-both.jfr, datadog.jfr   by these profilers (where Maven Central can be reached);
#                      both: samples of two clocks are events of one type
#   chunks.jfr         chunks.1.jfr to chunks.3.jfr, of several JVMs, one behind the other
set -euo pipefail
cd "$(dirname "$0")/.."

readonly CORPUS=$PWD/.cache/jfr-corpus
readonly PROGRAMS=${CLASSES:-$PWD/${CARGO_TARGET_DIR:-target}/debug/testprograms}
readonly SECONDS_LONG=1
mkdir -p "$CORPUS"

work=$(mktemp -d "$CORPUS/.making.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A recording is moved to its place when it is whole.
keep() {
    [ -s "$work/$1" ] || {
        echo "jfr-corpus: $1 was not made" >&2
        cat "$work/log" >&2
        exit 1
    }
    mv "$work/$1" "$CORPUS/$1"
}

record() {
    local name=$1 home=$2 settings=$3
    [ -f "$CORPUS/$name.jfr" ] && return
    echo "jfr-corpus: $name" >&2
    "$home/bin/java" -Xmx128m -XX:FlightRecorderOptions:maxchunksize=1m,stackdepth=512 \
        -XX:StartFlightRecording:"filename=$work/$name.jfr,settings=$settings" \
        -cp "$PROGRAMS" programs.Recorded $SECONDS_LONG >"$work/log" 2>&1 </dev/null
    keep "$name.jfr"
}

# The repository's last chunk of a JVM that had no time to finish it.
record_killed() {
    local name=$1 home=$2
    [ -f "$CORPUS/$name.jfr" ] && return
    echo "jfr-corpus: $name" >&2
    "$home/bin/java" -Xmx128m -XX:FlightRecorderOptions:repository="$work/$name" \
        -XX:StartFlightRecording:settings="$PWD/scripts/jfr-corpus.jfc" \
        -cp "$PROGRAMS" programs.Recorded 60 >"$work/log" 2>&1 </dev/null &
    local jvm=$! waited=0
    while [ $waited -lt 100 ] && [ "$(find "$work/$name" -name '*.jfr' -size +200k 2>/dev/null | wc -l)" = 0 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    sleep 2
    kill -9 $jvm
    wait $jvm 2>/dev/null || true
    cp "$(find "$work/$name" -name '*.jfr' | sort | tail -n1)" "$work/$name.jfr"
    keep "$name.jfr"
}

# One of each version, of a version that comes twice the last.
declare -A homes
for home in .cache/jdks/*-*; do
    name=$(basename "$home")
    homes[${name%%-*}]=$home
done
for home in "${homes[@]}"; do
    name=$(basename "$home")
    record "$name-default" "$home" default
    record "$name-rich" "$home" "$PWD/scripts/jfr-corpus.jfc"
    # JDK 11 shows nothing before a chunk is finished.
    [ "${name%%-*}" = 11 ] || record_killed "$name-killed" "$home"
done

java=${homes[17]}/bin/java
if [ ! -f "$CORPUS/async-profiler.jfr" ] && library=$(scripts/fetch-async-profiler.sh); then
    echo "jfr-corpus: async-profiler" >&2
    "$java" "-agentpath:$library=start,event=ctimer,interval=2ms,wall=20ms,alloc=200k,lock=100us,file=$work/async-profiler.jfr" \
        -cp "$PROGRAMS" programs.Recorded $SECONDS_LONG >"$work/log" 2>&1 </dev/null
    keep async-profiler.jfr
fi
if [ ! -f "$CORPUS/async-profiler-both.jfr" ] && library=$(scripts/fetch-async-profiler.sh); then
    echo "jfr-corpus: async-profiler-both" >&2
    "$java" "-agentpath:$library=start,event=ctimer,interval=2ms,wall=20ms,nobatch,nativemem=64k,live,alloc=100k,file=$work/async-profiler-both.jfr" \
        -cp "$PROGRAMS" programs.Recorded $SECONDS_LONG >"$work/log" 2>&1 </dev/null
    keep async-profiler-both.jfr
fi
if [ ! -f "$CORPUS/datadog.jfr" ] && jar=$(scripts/fetch-maven.sh com.datadoghq:ddprof:1.22.0); then
    echo "jfr-corpus: datadog" >&2
    command="start,cpu=2ms,wall=10ms,memory=65536:al,cstack=vm,jfr,attributes=traceid;rest_endpoint,file=$work/datadog.jfr"
    "$java" -cp "$PROGRAMS:$jar" programs.RecordedByDatadog "$command" $SECONDS_LONG >"$work/log" 2>&1 </dev/null
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
