#!/usr/bin/env bash
# What a setter of contexts costs, beside Datadog's: scripts/bench-context.sh, called by scripts/bench.sh context
#
# OTLPPROF and API are the agent's library and the folder of the API's classes; JAVA is the JVM (default: java in PATH),
# whose javac compiles the benchmark. TURNS, WARMUP_S, MEASURE_S, ONLY and PROFILER: benches/context/Turns.java.
set -euo pipefail
cd "$(dirname "$0")/.."

java=${JAVA:-java}
# JMH, what it needs, and the peer.
jars=$(scripts/fetch-maven.sh org.openjdk.jmh:jmh-core:1.37 org.openjdk.jmh:jmh-generator-annprocess:1.37 \
    net.sf.jopt-simple:jopt-simple:5.0.4 org.apache.commons:commons-math3:3.6.1 com.datadoghq:ddprof:1.22.0)
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
# From JDK 23 on, processors run where they are named.
jars=$jars:$(scripts/fetch-opentelemetry.sh)
"${java%java}javac" -d "$classes" -cp "$API:$jars" -processor org.openjdk.jmh.generators.BenchmarkProcessor \
    -Xlint:all,-options,-processing,-classfile,-try benches/context/*.java java/opentelemetry/io/otlpprof/opentelemetry/*.java
"$java" -cp "$classes:$API:$jars" context.Turns "-Dotlpprof.library=$OTLPPROF" ${JVM_OPTIONS:-}
