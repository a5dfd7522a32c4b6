#!/usr/bin/env bash
# Checks that files load on a system with another C library: scripts/check-loads.sh C_LIBRARY FILE...
#
# Each FILE is an ELF library or program. C_LIBRARY is a version of glibc, such as 2.17, or the file of musl's
# C library (scripts/install-musl.sh).
#
# For glibc, a FILE must not need a symbol of a later glibc, nor a library besides glibc's own, nor a symbol
# that the linker found in no library: such a symbol has no version, and is missing in an older glibc. For
# musl, whose symbols have no versions, a FILE must need no other library, and no symbol that musl's lacks.
# Weak symbols may be missing: Rust's standard library tests each of these before calling it.
set -euo pipefail

fail() {
    echo "check-loads: $*" >&2
    exit 1
}

[ $# -ge 2 ] || fail "usage: scripts/check-loads.sh C_LIBRARY FILE... (2.17, or a file of musl's libc.so)"
c_library=$1
shift
command -v readelf >/dev/null || fail "needs readelf (scripts/install-toolchain.sh cc)"


# Prints the symbols of a file that are for other files to use, and are defined (or UND: undefined), one a
# line, with the binding of each: symbols FILE defined|UND. The columns of readelf: number, value, size, type,
# binding, visibility, section, name@version and the version's number.
symbols() {
    readelf --dyn-syms -W "$1" |
        awk -v which="$2" '$8 != "" && $1 ~ /^[0-9]+:$/ && ($7 == "UND") == (which == "UND") { print $8, $5 }'
}

# Prints each symbol that glibc of version $c_library lacks.
missing_in_glibc() {
    symbols "$1" UND | awk -v newest="$c_library" '
        function is_later(version,    have, most, part) {
            split(version, have, ".")
            split(newest, most, ".")
            for (part = 1; part <= 3; part++)
                if (have[part] + 0 != most[part] + 0) return have[part] + 0 > most[part] + 0
            return 0
        }
        {
            version = $1
            if (!sub(/^[^@]*@+/, "", version)) {
                if ($2 != "WEAK") print $1 ", without a version"
            } else if (version !~ /^GLIBC_[0-9.]+$/ || is_later(substr(version, 7))) print $1
        }'
}

# Prints each symbol that musl's file $c_library lacks.
missing_in_musl() {
    awk 'NR == FNR { exported[$1] = 1; next } !($1 in exported) && $2 != "WEAK" { print $1 }' \
        <(symbols "$c_library" defined) <(symbols "$1" UND)
}

if [[ $c_library =~ ^[0-9]+(\.[0-9]+)+$ ]]; then
    named="glibc $c_library" missing=missing_in_glibc
    own='lib(c|m|dl|rt|pthread|util)\.so\.[0-9]|ld-linux.*\.so\.[0-9]'
else
    [ -f "$c_library" ] || fail "no file: $c_library"
    [ "$(symbols "$c_library" defined | wc -l)" -ge 1000 ] || fail "$c_library is no C library"
    # The name by which zig, as every linker, finds musl's library. The loader takes it for itself.
    named=musl missing=missing_in_musl own='libc\.so'
fi
for file in "$@"; do
    [ -f "$file" ] || fail "no file: $file"
    dynamic=$(readelf -dW "$file")
    libraries=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
    [ -n "$libraries" ] || fail "$file: readelf names no needed library, so the file was not read"
    others=$(grep -vE "^($own)\$" <<<"$libraries" || true)
    [ -z "$others" ] || fail "$file needs more than the C library: $(paste -sd ' ' <<<"$others")"
    seen=$(symbols "$file" UND | wc -l)
    [ "$seen" -ge 20 ] || fail "$file: only $seen symbols, so not all have been read"
    wrong=$("$missing" "$file")
    [ -z "$wrong" ] || fail "$file does not load on $named: $(paste -sd ';' <<<"$wrong")"
    echo "$file: loads on $named, needs $(paste -sd ' ' <<<"$libraries")"
done
