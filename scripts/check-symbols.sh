#!/usr/bin/env bash
# Checks that addresses in released files resolve by their debug files: scripts/check-symbols.sh COMMAND
#     ARCHIVE FILE...
#
# ARCHIVE is a tar archive of debug files, in folders .build-id/xx. Addresses of each stripped FILE are
# resolved twice by COMMAND, which is an otlpprof of this machine: with the unpacked archive
# (`symbolize --path`), and with the archive in a store (`symbols add`). Each must become one of the project's
# functions, with file and line.
set -euo pipefail

fail() {
    echo "check-symbols: $*" >&2
    exit 1
}

[ $# -ge 3 ] || fail "usage: scripts/check-symbols.sh COMMAND ARCHIVE FILE..."
command=$1 archive=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/unpacked" "$work/cache"
# No result of an earlier command is used.
export XDG_CACHE_HOME=$work/cache
tar -xf "$archive" -C "$work/unpacked"
"$command" symbols add --store "$work/store" "$archive" >"$work/said" 2>&1 || fail "$(cat "$work/said")"

for file in "$@"; do
    id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
    debug=$work/unpacked/.build-id/${id:0:2}/${id:2}.debug
    [ -n "$id" ] && [ -f "$debug" ] || fail "$archive has no debug file of $file, build-id ${id:-none}"
    ! readelf -SW "$file" | grep -E ' \.(debug_line|symtab) ' >/dev/null ||
        fail "$file has symbols of its own"
    # Stacks of two frames: every twentieth function of the project, at an address inside of it.
    # readelf reports that the debug file of a program has no interpreter.
    readelf -sW "$debug" 2>/dev/null | awk -v id="$id" '
        $4 == "FUNC" && $3 > 64 && $8 ~ /^_.*[0-9]otlpprof/ && seen++ % 20 == 0 {
            printf "root;%s.<remote>(0x%s) 1\n", id, $2
        }' >"$work/stacks.collapsed"
    count=$(wc -l <"$work/stacks.collapsed")
    [ "$count" -ge 10 ] || fail "$debug names only $count functions"
    for place in --path="$work/unpacked" --store="$work/store"; do
        "$command" symbolize "$place" --not-this-machine --no-debuginfod "$work/stacks.collapsed" \
            -o "$work/resolved.otlp" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
        "$command" print --lines --top-frames 100000 "$work/resolved.otlp" >"$work/printed"
        ! grep -F '<remote>' "$work/printed" >&2 || fail "not resolved by $place"
        lines=$(grep -cE ' otlpprof[a-z_]*::.* \(.*src/[a-z0-9_/]+\.rs:[0-9]+\)$' "$work/printed" || true)
        [ "$lines" -ge $((count / 2)) ] ||
            fail "$place: of $count functions only $lines are lines of the project: $(cat "$work/printed")"
    done
    echo "${file##*/}: $count functions resolve to $lines lines, such as$(
        grep -m1 -oE ' otlpprof[a-z_]*::.*' "$work/printed")"
done
