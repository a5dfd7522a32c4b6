#!/usr/bin/env bash
# Prepares jfrconv, runs benches/flamegraph.rs, and measures the pages that it makes in headless Chromium:
# scripts/bench-flamegraph.sh, called by scripts/bench.sh flamegraph
#
# JAVA is the JVM of jfrconv (default: java in PATH), which comes from Maven Central. If jfrconv cannot be
# fetched, a message says so. TURNS is the number of rounds in which each program makes its page once.
set -euo pipefail
cd "$(dirname "$0")/.."

export JAVA=${JAVA:-java}
PAGES=$(mktemp -d)
export PAGES
trap 'rm -rf "$PAGES"' EXIT

if JFR_CONVERTER=$(scripts/fetch-maven.sh tools.profiler:jfr-converter:4.5); then
    export JFR_CONVERTER
else
    unset JFR_CONVERTER
fi
cargo bench --locked --target-dir "${CARGO_TARGET_DIR:-target}/bench" --bench flamegraph </dev/null
for name in deep labels; do
    scripts/page.sh bench "$name" "$PAGES/$name.html"
done
