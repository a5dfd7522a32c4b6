#!/usr/bin/env bash
# Symbolizes the messages of an hour: scripts/bench-symbolize-hour.sh, called by scripts/bench.sh
# symbolize-hour
#
# 360 messages, each of 2,000 samples and 3,000 native frames in 20 objects: libjvm and libc of Debian with
# their debug files, and 18 libraries of a JDK with symbol tables. Prints the seconds (wall and user) and the
# memory of the first run, which makes the indexes, and the medians of TURNS (5) runs with them. Each run
# writes a new file: to remove the blocks of a file that is replaced is the file system's time.
# OTLPPROF_COMMAND is our command (default: that of a release build).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/medians.sh

scripts/install-toolchain.sh rust cc
debug=$(scripts/debug-objects.sh)
build_command
cargo build --quiet --release --locked --target-dir "$target/bench" --example remote_messages </dev/null
mkdir "$work/objects"
ln -s "$debug"/*.so "$debug"/*.debug "$work/objects"
objects=("$work/objects/libjvm.so=$debug/libjvm.debug" "$work/objects/libc.so=$debug/libc.debug")
jdk=${JDK:-/usr/lib/jvm/temurin-25-jdk-amd64}
while read -r library; do
    ln -s "$library" "$work/objects"
    objects+=("$work/objects/$(basename "$library")")
done < <(find "$jdk/lib" -maxdepth 1 -name 'lib*.so' -type f -size +16k | sort | head -18)
if [ ${#objects[@]} -lt 20 ]; then
    echo "bench-symbolize-hour: $jdk has too few libraries; name a JDK in JDK" >&2
    exit 1
fi
"$target/bench/release/examples/remote_messages" hour "$work/hour.otlp" "${objects[@]}"
echo "$(stat -c %s "$work/hour.otlp") bytes of messages, ${#objects[@]} objects"

export OTLPPROF_CACHE=$work/cache
symbolize() {
    rm -f "$work/out.otlp"
    measure "$1" "$OTLPPROF_COMMAND" symbolize "$work/hour.otlp" -o "$work/out.otlp" \
        --path "$work/objects" 2>"$work/summary"
}
symbolize first
sed 's/^/  /' "$work/summary"
for _ in $(seq "$turns"); do
    symbolize warm
done
print_medians first
print_medians warm
echo "indexes: $(du -sh "$work/cache" | cut -f1); goal: warm runs below 2 s"
