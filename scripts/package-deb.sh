#!/usr/bin/env bash
# Packs a release into Debian packages: scripts/package-deb.sh RELEASE NOTICES SHARE OUT
#
#   otlpprof_VERSION-1_ARCH.deb          /usr/bin/otlpprof, /usr/lib/otlpprof/libotlpprof.so, documents,
#                                        the manual's pages, completions for shells
#   otlpprof-dbgsym_VERSION-1_ARCH.deb   their debug files, in /usr/lib/debug/.build-id
#
# RELEASE is a folder of scripts/build-release.sh for glibc, NOTICES one of scripts/package-notices.sh, and
# SHARE one of scripts/package-shell-files.sh. The same input gives the same bytes. dpkg-deb packs the files
# of these folders as they are. cargo-deb would pack files at places that Cargo.toml names, in cargo's own
# folder, and has to be built first.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/reproducible.sh

readonly MAINTAINER="otlpprof maintainers <otlpprof@maintainers.invalid>"

fail() {
    echo "package-deb: $*" >&2
    exit 1
}

[ $# = 4 ] || fail "usage: scripts/package-deb.sh RELEASE NOTICES SHARE OUT"
release=$(realpath -m "$1") notices=$(realpath -m "$2") share=$(realpath -m "$3") out=$(realpath -m "$4")
command -v dpkg-deb >/dev/null || fail "needs dpkg-deb (the package dpkg)"
platform=$(scripts/elf-platform.sh "$release/libotlpprof.so")
case $platform in
linux-x86_64) architecture=amd64 ;;
linux-aarch64) architecture=arm64 ;;
*) fail "Debian has no JVM for $platform" ;;
esac
# In Debian's order of versions 1.0.0~rc.1 is before 1.0.0, as 1.0.0-rc.1 is in Semantic Versioning.
version=${VERSION/-/\~}-1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
main=$work/otlpprof symbols=$work/otlpprof-dbgsym
mkdir -p "$out"

# Builds a package of the files below FOLDER: build FOLDER SECTION DEPENDS SUMMARY DESCRIPTION
build() {
    local folder=$1 name=${1##*/} size
    # In units of 1024 bytes.
    size=$(find "$folder/usr" -type f -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / 1024) + 1 }')
    # All files have the time of the package, as in the archive.
    mkdir "$folder/DEBIAN"
    (cd "$folder" && find usr -type f -printf '%P\0' | sort -z | sed -z 's|^|usr/|' | xargs -0 md5sum) \
        >"$folder/DEBIAN/md5sums"
    cat >"$folder/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: $architecture
Maintainer: $MAINTAINER
Installed-Size: $size
Depends: $3
Section: $2
Priority: optional
Description: $4
$(fmt -w 76 <<<"$5" | sed 's/^/ /')
END
    find "$folder" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    # One thread: the bytes of xz depend on the number of blocks. Higher levels take minutes.
    dpkg-deb --root-owner-group --threads-max=1 -Zxz -z3 --build "$folder" "$work/incoming" >/dev/null
    mv "$work/incoming" "$out/${name}_${version}_$architecture.deb"
}

# Writes the copyright and the changelog of a package, as Debian's policy wants them: document FOLDER
document() {
    local folder=$1/usr/share/doc/${1##*/}
    mkdir -p "$folder"
    cat >"$folder/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: otlpprof

Files: *
Copyright: $(date -d "@$SOURCE_DATE_EPOCH" +%Y) the authors of otlpprof
License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
Comment:
 /usr/share/doc/otlpprof/licenses has the licenses of all parts that are linked
 into the files of this package.
END
    printf '%s\n' "otlpprof ($version) stable; urgency=medium" "" \
        "  * Release $VERSION. Its changes are in /usr/share/doc/otlpprof/changelog.gz." "" \
        " -- $MAINTAINER  $(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9 -n >"$folder/changelog.Debian.gz"
}

document "$main"
doc=$main/usr/share/doc/otlpprof
install -D -m 755 "$release/otlpprof" "$main/usr/bin/otlpprof"
install -D -m 644 "$release/libotlpprof.so" "$main/usr/lib/otlpprof/libotlpprof.so"
gzip -9 -n <CHANGELOG.md >"$doc/changelog.gz"
mkdir "$doc/docs"
install -m 644 docs/*.md "$doc/docs"
install -m 644 README.md "$notices/otlpprof.cdx.json" "$doc"
cp -r "$notices/licenses" "$doc"
# Debian's policy, 12.1: pages are compressed.
cp -r "$share"/. "$main/usr/share"
find "$main/usr/share/man" -type f -exec gzip -9 -n {} +
build "$main" java "libc6 (>= 2.17)" "OpenTelemetry-native continuous profiler for the JVM" \
    "A JVMTI agent, /usr/lib/otlpprof/libotlpprof.so, which samples Java and native frames, and sends OTLP \
profiles to an OpenTelemetry collector or a file; and a command, otlpprof, which runs programs under the \
agent, attaches it to running JVMs, and shows profiles."

document "$symbols"
scripts/copy-debug-files.sh "$release" "$symbols/usr/lib/debug"
build "$symbols" debug "otlpprof (= $version)" "debug symbols for otlpprof" \
    "Symbols and line tables of the command and of the agent's library, by build-id."
echo "$out/otlpprof_${version}_$architecture.deb"
