#!/usr/bin/env bash
# Reports, merges and exports the messages of an hour: scripts/bench-hour.sh, called by scripts/bench.sh hour
#
# 360 messages of 720,000 samples and 1,080,000 native frames, with hardly any common callers: the messages of
# scripts/bench-symbolize-hour.sh, unresolved. Prints the median seconds (wall and user) and memory of TURNS
# (5) runs of each command, in turns. Go's pprof is the peer of `report`, for the same hour in pprof's format.
# OTLPPROF_COMMAND is our command (default: that of a release build).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/medians.sh

scripts/install-toolchain.sh rust cc go
export PATH=$PATH:/usr/local/go/bin
debug=$(scripts/debug-objects.sh)
build_command
cargo build --quiet --release --locked --target-dir "$target/bench" --example remote_messages </dev/null
"$target/bench/release/examples/remote_messages" hour "$work/hour.otlp" \
    "$debug/libjvm.so=$debug/libjvm.debug" "$debug/libc.so=$debug/libc.debug"
"$OTLPPROF_COMMAND" export --to pprof -o "$work/hour.pb.gz" "$work/hour.otlp" 2>/dev/null
echo "$(stat -c %s "$work/hour.otlp") bytes of messages, $(stat -c %s "$work/hour.pb.gz") of pprof"

# Each run writes a new file: to remove the blocks of a file that is replaced is the file system's time.
run() {
    rm -f "$work"/out.*
    measure "$@" >/dev/null 2>&1
}
contenders=(report merge page to-pprof to-collapsed report-of-pprof go-pprof)
for _ in $(seq "$turns"); do
    run report "$OTLPPROF_COMMAND" report "$work/hour.otlp"
    run merge "$OTLPPROF_COMMAND" merge "$work/hour.otlp" -o "$work/out.otlp"
    run page "$OTLPPROF_COMMAND" flamegraph "$work/hour.otlp" -o "$work/out.html"
    run to-pprof "$OTLPPROF_COMMAND" export --to pprof "$work/hour.otlp" -o "$work/out.pb.gz"
    run to-collapsed "$OTLPPROF_COMMAND" export --to collapsed "$work/hour.otlp" -o "$work/out.txt"
    run report-of-pprof "$OTLPPROF_COMMAND" report "$work/hour.pb.gz"
    run go-pprof go tool pprof -symbolize=none -top "$work/hour.pb.gz"
done
for contender in "${contenders[@]}"; do
    print_medians "$contender"
done
echo "goal: 1 s for report, merge and page"
