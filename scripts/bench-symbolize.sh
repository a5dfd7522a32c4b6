#!/usr/bin/env bash
# Resolves addresses of libjvm's debug information beside llvm-symbolizer 19, the crate addr2line, blazesym
# and wholesym: scripts/bench-symbolize.sh, called by scripts/bench.sh symbolize
#
# Whole processes, names demangled, in turns: 10,000 addresses; one address, of which there are ADDRESSES
# (100) random ones; making the index; and both from the index. Prints for each the median of seconds (wall
# and user) and of peak memory. TURNS (5) is the number of rounds. A contender that cannot be built is
# skipped. RESOLVER is our program (default: the example resolve_addresses of a release build).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/medians.sh

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
turns=${TURNS:-5}
singles=${ADDRESSES:-100}

scripts/install-toolchain.sh rust cc llvm
file=$(scripts/debug-objects.sh)/libjvm.debug
if [ -z "${RESOLVER:-}" ]; then
    cargo build --quiet --release --locked --target-dir "$target/bench" --example resolve_addresses </dev/null
    RESOLVER=$target/bench/release/examples/resolve_addresses
fi
peers=$target/bench-symbolize-peers/release
cargo build --quiet --release --locked --manifest-path benches/symbolize_peers/Cargo.toml \
    --target-dir "$target/bench-symbolize-peers" </dev/null ||
    echo "bench-symbolize: the peers' programs cannot be built" >&2

# Addresses in functions, each byte of code as likely as any other; the same in each run.
nm --defined-only -S "$file" | awk -v count=10000 '
    function hex(text, i, value) {
        for (i = 1; i <= length(text); i++) {
            value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
        }
        return value
    }
    NF == 4 && $3 ~ /^[TtWwi]$/ { start[n] = hex($1); all += hex($2); end[n++] = all }
    END {
        srand(7)
        for (i = 0; i < count; i++) {
            byte = int(rand() * all)
            low = 0
            high = n - 1
            while (low < high) {
                middle = int((low + high) / 2)
                if (end[middle] > byte) high = middle; else low = middle + 1
            }
            printf "0x%x\n", start[low] + end[low] - 1 - byte
        }
    }' >"$work/many"

# Runs a contender once: once NAME ADDRESSES COMMAND…
once() {
    measure "$1" "${@:3}" <"$2" >/dev/null
}

# Runs every contender on these addresses: all_contenders PREFIX ADDRESSES
all_contenders() {
    once "$1 otlpprof" "$2" "$RESOLVER" --demangle "$file"
    once "$1 otlpprof, index" "$2" "$RESOLVER" --demangle --index "$work/index"
    once "$1 llvm-symbolizer 19" "$2" llvm-symbolizer-19 --obj="$file" -i --demangle
    for peer in addr2line blazesym wholesym; do
        [ ! -x "$peers/$peer" ] || once "$1 $peer" "$2" "$peers/$peer" "$file"
    done
}

"$RESOLVER" --make "$work/index" "$file"
for _ in $(seq "$turns"); do
    once "making the index" /dev/null "$RESOLVER" --make "$work/index" "$file"
    all_contenders "10,000 addresses:" "$work/many"
done
shuf -n "$singles" --random-source="$file" "$work/many" >"$work/singles"
while read -r address; do
    echo "$address" >"$work/one"
    all_contenders "one address:" "$work/one"
done <"$work/singles"

echo "libjvm of $(stat -Lc %s "$file") bytes; index of $(stat -Lc %s "$work/index") bytes"
print_medians "making the index"
for prefix in "10,000 addresses:" "one address:"; do
    for contender in otlpprof "otlpprof, index" "llvm-symbolizer 19" addr2line blazesym wholesym; do
        print_medians "$prefix $contender"
    done
done
