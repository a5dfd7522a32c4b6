#!/usr/bin/env bash
# Prepares the recordings and contenders of benches/jfr.rs, and runs it: scripts/bench-jfr.sh, called by
# scripts/bench.sh jfr
#
# JAVA is the JVM (default: java in PATH), whose javac compiles the contenders in Java. The others come from
# Maven Central and crates.io. A contender that cannot be fetched is skipped with a message. RECORDINGS are
# large recordings, separated by colons. By default there are three: one of JAVA's own recorder and one of
# async-profiler, each SECONDS_LONG (20) of a program that uses all kinds of events, and one of async-profiler
# with 200,000 calls below deep stacks that hardly ever repeat. Each is appended to itself until it has
# MEGABYTES (100). TURNS is the number of rounds in which each contender runs once.
set -euo pipefail
cd "$(dirname "$0")/.."

export JAVA=${JAVA:-java}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
programs=$(scripts/build-testkit.sh)/testprograms
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

contenders=(Passes.java ReadByJdk.java)
if JFR_CONVERTER=$(scripts/fetch-maven.sh tools.profiler:jfr-converter:4.5); then
    export JFR_CONVERTER
    contenders+=(ReadByJfrReader.java ConvertByJfrconv.java)
else
    unset JFR_CONVERTER
fi
if JMC=$(scripts/fetch-maven.sh org.openjdk.jmc:flightrecorder:9.1.2 org.openjdk.jmc:common:9.1.2 \
    at.yawk.lz4:lz4-java:1.10.2 org.owasp.encoder:encoder:1.2.3); then
    export JMC
    contenders+=(ReadByJmc.java)
else
    unset JMC
fi
"${JAVA%java}javac" -d "$work" -cp "${JFR_CONVERTER:-}:${JMC:-}" "${contenders[@]/#/benches/jfr/}"
export CLASSES=$work
if cargo build --quiet --release --locked --manifest-path benches/jfr/jfrs/Cargo.toml \
    --target-dir "$target/bench-jfrs" </dev/null; then
    export JFRS=$target/bench-jfrs/release/otlpprof-bench-jfrs
fi

if [ -z "${RECORDINGS:-}" ]; then
    seconds=${SECONDS_LONG:-20}
    export MEGABYTES=${MEGABYTES:-100}
    # jfrs cannot read chunks that contain a name with characters outside of the BMP.
    name=computing
    echo "recording for $seconds s, twice" >&2
    "$JAVA" -Xmx256m -XX:FlightRecorderOptions:stackdepth=512 \
        -XX:StartFlightRecording:"filename=$work/jdk.jfr,settings=$PWD/scripts/jfr-corpus.jfc" \
        -cp "$programs" programs.Recorded "$seconds" $name >"$work/log" 2>&1 </dev/null
    RECORDINGS=$work/jdk.jfr
    if library=$(scripts/fetch-async-profiler.sh); then
        options=start,event=ctimer,interval=200us,alloc=100k,lock=100us,jstackdepth=512
        "$JAVA" "-agentpath:$library=$options,file=$work/async-profiler.jfr" \
            -Xmx256m -cp "$programs" programs.Recorded "$seconds" $name >"$work/log" 2>&1 </dev/null
        options=start,event=programs.RecordedStacks.reached,jstackdepth=512
        "$JAVA" "-agentpath:$library=$options,file=$work/deep-stacks.jfr" \
            -Xmx256m -cp "$programs" programs.RecordedStacks 200000 60 >"$work/log" 2>&1 </dev/null
        RECORDINGS+=:$work/async-profiler.jfr:$work/deep-stacks.jfr
    fi
fi
export RECORDINGS
cargo bench --locked --target-dir "$target/bench" --bench jfr </dev/null
