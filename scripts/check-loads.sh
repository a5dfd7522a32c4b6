#!/usr/bin/env bash
# Checks that files load on a system with an older glibc: scripts/check-loads.sh GLIBC_VERSION FILE...
#
# Each FILE is an ELF library or program. A FILE must not need a symbol of a later glibc, nor a library
# besides glibc's own, nor a symbol that the linker found in no library: such a symbol has no version, and is
# missing in an older glibc. Weak symbols may be missing: Rust's standard library tests each of these before
# calling it.
set -euo pipefail

fail() {
    echo "check-loads: $*" >&2
    exit 1
}

[ $# -ge 2 ] || fail "usage: scripts/check-loads.sh GLIBC_VERSION FILE..."
newest=$1
shift
command -v readelf >/dev/null || fail "needs readelf (scripts/install-toolchain.sh cc)"

for file in "$@"; do
    [ -f "$file" ] || fail "no file: $file"
    dynamic=$(readelf -dW "$file")
    libraries=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
    [ -n "$libraries" ] || fail "$file: readelf names no needed library, so the file was not read"
    others=$(grep -vE '^(lib(c|m|dl|rt|pthread|util)\.so\.[0-9]|ld-linux.*\.so\.[0-9])$' \
        <<<"$libraries" || true)
    [ -z "$others" ] || fail "$file needs more than the C library: $(paste -sd ' ' <<<"$others")"
    # The columns: number, value, size, type, binding, visibility, section, name@version and the version's
    # number.
    wrong=$(readelf --dyn-syms -W "$file" | awk -v newest="$newest" '
        function is_later(version,    have, most, part) {
            split(version, have, ".")
            split(newest, most, ".")
            for (part = 1; part <= 3; part++)
                if (have[part] + 0 != most[part] + 0) return have[part] + 0 > most[part] + 0
            return 0
        }
        $7 == "UND" && $8 != "" {
            seen++
            version = $8
            if (!sub(/^[^@]*@+/, "", version)) {
                if ($5 != "WEAK") print $8 ", without a version"
            } else if (version !~ /^GLIBC_[0-9.]+$/ || is_later(substr(version, 7))) print $8
        }
        END { if (seen < 20) print "only " seen + 0 " symbols, so not all have been read" }')
    [ -z "$wrong" ] || fail "$file does not load on glibc $newest: $(paste -sd ';' <<<"$wrong")"
    echo "$file: loads on glibc $newest, needs $(paste -sd ' ' <<<"$libraries")"
done
