#!/usr/bin/env bash
# Resolves addresses of libjvm's debug information beside llvm-symbolizer 19, the crate addr2line, blazesym
# and wholesym: scripts/bench-symbolize.sh, called by scripts/bench.sh symbolize
#
# Whole processes, names demangled, in turns: 10,000 addresses; one address, of which there are ADDRESSES
# (100) random ones. Ours is the command, from a message with these frames to one with their names: at the
# object's first use, at the second, which makes the index, and from the index. The others read addresses and
# print names. Prints for each the median of seconds (wall and user) and of peak memory. TURNS (5) is the
# number of rounds. A contender that cannot be built is skipped. OTLPPROF_COMMAND is our command (default: the
# command of a release build).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/medians.sh

singles=${ADDRESSES:-100}

scripts/install-toolchain.sh rust cc llvm
objects=$(scripts/debug-objects.sh)
file=$objects/libjvm.debug
build_command
# The program that writes the messages is not measured.
cargo build --quiet --locked --example remote_messages </dev/null
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

# Writes the message of these addresses: message ADDRESSES
message() {
    "$target/debug/examples/remote_messages" addresses "$work/in.otlp" "$objects/libjvm.so=$file" <"$1"
}

# Runs our command with a folder of indexes on the message of these addresses: ours NAME FOLDER
ours() {
    OTLPPROF_CACHE=$work/$2 once "$1" /dev/null "$OTLPPROF_COMMAND" symbolize "$work/in.otlp" \
        -o "$work/out.otlp" --path "$work/objects" 2>>"$work/summaries"
}

# Runs every contender on these addresses: all_contenders PREFIX ADDRESSES
all_contenders() {
    message "$2"
    rm -rf "$work/first"
    ours "$1 otlpprof" first
    ours "$1 otlpprof, index" kept
    once "$1 llvm-symbolizer 19" "$2" llvm-symbolizer-19 --obj="$file" -i --demangle
    for peer in addr2line blazesym wholesym; do
        [ ! -x "$peers/$peer" ] || once "$1 $peer" "$2" "$peers/$peer" "$file"
    done
}

mkdir "$work/objects"
ln -s "$objects/libjvm.so" "$file" "$work/objects"
message "$work/many"
# The second use of an object makes its index.
for _ in 1 2; do
    ours "preparing" kept
done
for _ in $(seq "$turns"); do
    all_contenders "10,000 addresses:" "$work/many"
    ours "10,000 addresses: otlpprof, making the index" first
done
shuf -n "$singles" --random-source="$file" "$work/many" >"$work/singles"
while read -r address; do
    echo "$address" >"$work/one"
    all_contenders "one address:" "$work/one"
done <"$work/singles"

echo "libjvm of $(stat -Lc %s "$file") bytes; index of $(stat -Lc %s "$work"/kept/indexes/*.symbols) bytes"
sort "$work/summaries" | uniq -c
for prefix in "10,000 addresses:" "one address:"; do
    for contender in otlpprof "otlpprof, making the index" "otlpprof, index" "llvm-symbolizer 19" addr2line \
        blazesym wholesym; do
        print_medians "$prefix $contender"
    done
done
