#!/usr/bin/env bash
# Fetches OpenTelemetry's Java API and SDK from Maven Central and prints their class path:
# scripts/fetch-opentelemetry.sh [--java-agent]
#
# With --java-agent prints the path of OpenTelemetry's Java agent instead.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SDK=1.49.0 JAVA_AGENT=2.33.1
if [ "${1:-}" = --java-agent ]; then
    exec scripts/fetch-maven.sh "io.opentelemetry.javaagent:opentelemetry-javaagent:$JAVA_AGENT"
fi
artifacts=()
for name in context api sdk-common sdk-trace sdk-metrics sdk-logs sdk sdk-extension-autoconfigure-spi \
    sdk-extension-autoconfigure; do
    artifacts+=("io.opentelemetry:opentelemetry-$name:$SDK")
done
exec scripts/fetch-maven.sh "${artifacts[@]}"
