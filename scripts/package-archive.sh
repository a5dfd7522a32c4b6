#!/usr/bin/env bash
# Packs a release into tar archives: scripts/package-archive.sh RELEASE NOTICES SHARE OUT
#
#   otlpprof-VERSION-PLATFORM.tar.gz          command, library, documents, completions, licenses and SBOM
#   otlpprof-VERSION-PLATFORM-debug.tar.gz    their debug files, by build-id
#
# RELEASE is a folder of scripts/build-release.sh, NOTICES one of scripts/package-notices.sh, and SHARE one of
# scripts/package-shell-files.sh. PLATFORM is as scripts/elf-platform.sh prints it. The same input gives the
# same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/reproducible.sh

fail() {
    echo "package-archive: $*" >&2
    exit 1
}

[ $# = 4 ] || fail "usage: scripts/package-archive.sh RELEASE NOTICES SHARE OUT"
release=$(realpath -m "$1") notices=$(realpath -m "$2") share=$(realpath -m "$3") out=$(realpath -m "$4")
platform=$(scripts/elf-platform.sh "$release/libotlpprof.so")
name=otlpprof-$VERSION-$platform
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Packs files independently of their order, times and owner: pack ARCHIVE FOLDER NAME...
pack() {
    tar --create --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
        --numeric-owner -C "$2" "${@:3}" | gzip -9 -n >"$work/incoming"
    mv "$work/incoming" "$1"
}

mkdir -p "$out" "$work/$name/docs"
install -D -m 755 "$release/otlpprof" "$work/$name/bin/otlpprof"
install -D -m 644 "$release/libotlpprof.so" "$work/$name/lib/libotlpprof.so"
install -m 644 README.md LICENSE CHANGELOG.md "$notices/otlpprof.cdx.json" "$work/$name"
install -m 644 docs/*.md "$work/$name/docs"
cp -r "$notices/licenses" "$work/$name"
cp -r "$share" "$work/$name/share"
pack "$out/$name.tar.gz" "$work" "$name"

scripts/copy-debug-files.sh "$release" "$work/debug"
pack "$out/$name-debug.tar.gz" "$work/debug" .build-id
echo "$out/$name.tar.gz"
