#!/usr/bin/env bash
# Makes the folder from which the image for init containers is built, FOLDER/image, of the archives and the
# jar in FOLDER: scripts/package-image.sh FOLDER
#
#   image/Dockerfile
#   image/amd64/otlpprof   what becomes /otlpprof in the image: the content of the archive for glibc, that of
#   image/arm64/otlpprof   the archive for musl in the folder musl, and the jar, as otlpprof.jar
#
# An archive that is not in FOLDER is left out. If docker, podman or buildah has a builder here, the image for
# this machine is built too, and called otlpprof:VERSION.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/reproducible.sh

fail() {
    echo "package-image: $*" >&2
    exit 1
}

[ $# = 1 ] && [ -d "$1" ] || fail "usage: scripts/package-image.sh FOLDER (of scripts/package.sh)"
folder=$(realpath "$1")
image=$folder/image
rm -rf "$image"
mkdir "$image"
install -m 644 packaging/Dockerfile "$image"
for pair in x86_64:amd64 aarch64:arm64; do
    for libc in "" -musl; do
        archive=$folder/otlpprof-$VERSION-linux-${pair%:*}$libc.tar.gz
        [ -f "$archive" ] || continue
        content=$image/${pair#*:}/otlpprof
        mkdir -p "$content/${libc#-}"
        tar -xzf "$archive" --no-same-owner --strip-components=1 -C "$content/${libc#-}"
        install -m 644 "$folder/otlpprof-$VERSION.jar" "$content/otlpprof.jar"
    done
done
compgen -G "$image/*/otlpprof" >/dev/null || fail "$folder has no archive (scripts/package-archive.sh)"
find "$image" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

for builder in docker podman buildah; do
    if "$builder" info >/dev/null 2>&1; then
        "$builder" build --quiet --tag "otlpprof:$VERSION" "$image" >&2
        break
    fi
done
echo "$image"
