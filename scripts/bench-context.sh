#!/usr/bin/env bash
# What a setter of contexts costs, beside Datadog's: scripts/bench-context.sh, called by scripts/bench.sh context
#
# OTLPPROF and API are the agent's library and the folder of the API's classes; JAVA is the JVM (default: java in PATH),
# whose javac compiles the benchmark. TURNS, WARMUP_S, MEASURE_S, ONLY and PROFILER: benches/context/Turns.java.
set -euo pipefail
cd "$(dirname "$0")/.."

java=${JAVA:-java}
jars=$(scripts/fetch-jmh.sh)
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
"${java%java}javac" -d "$classes" -cp "$API:$jars" -Xlint:all,-options,-processing benches/context/*.java
"$java" -cp "$classes:$API:$jars" context.Turns "-Dotlpprof.library=$OTLPPROF" ${JVM_OPTIONS:-}
