#!/usr/bin/env bash
# Measures the cost of setting contexts, beside Datadog's profiler: scripts/bench-context.sh, called by
# scripts/bench.sh context
#
# OTLPPROF, API and CLASSES are the agent's library, the folder of the API's classes and the folder of the
# test programs' classes. JAVA is the JVM (default: java in PATH). JAVAC compiles the benchmark (default: the
# JVM's own, else javac in PATH). For TURNS, WARMUP_S, MEASURE_S, ONLY and PROFILER see
# benches/context/Turns.java.
set -euo pipefail
cd "$(dirname "$0")/.."

java=${JAVA:-java}
javac=${JAVAC:-${java%java}javac}
# A JRE has no javac.
command -v "$javac" >/dev/null || javac=javac
# JMH, its dependencies, and the peer.
jars=$(scripts/fetch-maven.sh org.openjdk.jmh:jmh-core:1.37 org.openjdk.jmh:jmh-generator-annprocess:1.37 \
    net.sf.jopt-simple:jopt-simple:5.0.4 org.apache.commons:commons-math3:3.6.1 com.datadoghq:ddprof:1.22.0)
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
# From JDK 23 on, javac runs annotation processors only if they are named.
jars=$jars:$(scripts/fetch-opentelemetry.sh)
# Compiles for one release, so that every JVM runs the same classes.
"$javac" --release 11 -d "$classes" -cp "$API:$jars" \
    -processor org.openjdk.jmh.generators.BenchmarkProcessor \
    -Xlint:all,-options,-processing,-classfile,-try \
    benches/context/*.java java/opentelemetry/io/otlpprof/opentelemetry/*.java
"$java" -cp "$classes:$API:$jars" context.Turns "-Dotlpprof.library=$OTLPPROF" ${JVM_OPTIONS:-}
# Measures the memory for the contexts of 100,000 virtual threads, beside 100,000 threads without contexts.
# The heap is touched at the start, so that later growth of the resident memory is outside of the Java heap.
if [ -z "${ONLY:-}" ] && "$java" --version | head -1 | grep -Eq ' (2[1-9]|[3-9][0-9])'; then
    for with in without with; do
        "$java" -XX:+UseSerialGC -Xms1g -Xmx1g -XX:+AlwaysPreTouch \
            "-agentpath:$OTLPPROF=cpu=10ms,file=/dev/null,loglevel=error" -cp "$CLASSES:$API" \
            programs.ContextMemory 100000 4 "$with" | sed "s/^/context: memory, $with contexts, /"
    done
fi
