#!/usr/bin/env bash
# Moves the symbols of released files into debug files: scripts/split-symbols.sh FOLDER FILE...
#
# Each FILE of FOLDER is a library or program with a build-id. Its symbols and line tables go to
# FOLDER/.build-id/xx/yyyy.debug, the layout of /usr/lib/debug, and FILE keeps what a system loads. FILE is
# replaced as a whole, so that a program that has the old file mapped keeps it. A stripped FILE that has its
# debug file is left alone.
set -euo pipefail

fail() {
    echo "split-symbols: $*" >&2
    exit 1
}

[ $# -ge 2 ] || fail "usage: scripts/split-symbols.sh FOLDER FILE..."
folder=$1
shift
command -v readelf >/dev/null || fail "needs readelf (scripts/install-toolchain.sh cc)"
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

# Runs LLVM's objcopy, which reads files of every architecture, and keeps the segments as LLD has laid them
# out: Rust's own, or else Debian's.
sysroot=$(rustc --print sysroot)
host=$(rustc -vV | sed -n 's/^host: //p')
objcopy() {
    local rusts=$sysroot/lib/rustlib/$host/bin/rust-objcopy
    if [ -x "$rusts" ]; then
        LD_LIBRARY_PATH=$sysroot/lib "$rusts" "$@"
    else
        command -v llvm-objcopy-19 >/dev/null || "${0%/*}/install-toolchain.sh" llvm
        llvm-objcopy-19 "$@"
    fi
}

for name in "$@"; do
    file=$folder/$name
    [ -f "$file" ] || fail "no file: $file"
    id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
    [ ${#id} = 40 ] || fail "$file has no build-id"
    debug=$folder/.build-id/${id:0:2}/${id:2}.debug
    # Not grep -q: readelf could fail where it ends before it has read all.
    if ! readelf -SW "$file" | grep ' \.debug_line ' >/dev/null; then
        [ -f "$debug" ] || fail "$file has no line tables, and there is no $debug"
        continue
    fi
    mkdir -p "${debug%/*}"
    objcopy --only-keep-debug "$file" "$debug.new"
    chmod 644 "$debug.new"
    objcopy --strip-all "$file" "$file.new"
    mv "$debug.new" "$debug"
    mv "$file.new" "$file"
done
