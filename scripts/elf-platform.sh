#!/usr/bin/env bash
# Prints the platform that a library or program is for, such as linux-x86_64 or linux-aarch64-musl:
# scripts/elf-platform.sh FILE
#
# The names are names of folders in the jar, among which io.otlpprof.EmbeddedLibrary chooses, and of archives.
# -musl stands for musl in place of glibc.
set -euo pipefail

fail() {
    echo "elf-platform: $*" >&2
    exit 1
}

[ $# = 1 ] || fail "usage: scripts/elf-platform.sh FILE"
file=$1
[ -f "$file" ] || fail "no file: $file"
command -v readelf >/dev/null || fail "needs readelf (scripts/install-toolchain.sh cc)"
# The first bytes of a 64-bit little-endian ELF file, and e_machine (elf.h: EM_X86_64, EM_AARCH64).
[ "$(od -An -tx1 -N6 "$file" | tr -d ' ')" = 7f454c460201 ] ||
    fail "$file is not a 64-bit little-endian ELF file"
case $(od -An -tu2 -j18 -N2 "$file" | tr -d ' ') in
62) architecture=x86_64 ;;
183) architecture=aarch64 ;;
*) fail "$file is for an architecture that the agent does not run on" ;;
esac
# musl has one file, under one of these names, for all that glibc has in several.
needed=$(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if grep -qxF libc.so.6 <<<"$needed"; then
    echo "linux-$architecture"
elif grep -qE "^(libc|libc\.musl-$architecture|ld-musl-$architecture)\.so(\.1)?$" <<<"$needed"; then
    echo "linux-$architecture-musl"
else
    fail "$file needs neither glibc nor musl: $(paste -sd ' ' <<<"$needed")"
fi
