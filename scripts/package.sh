#!/usr/bin/env bash
# Makes all artifacts to publish, in target/package: scripts/package.sh [--out DIR] [RELEASE]...
#
#   otlpprof-VERSION-PLATFORM.tar.gz          command, library, documents, licenses, SBOM, of each platform
#   otlpprof-VERSION-PLATFORM-debug.tar.gz    their debug files, by build-id
#   otlpprof_VERSION-1_ARCH.deb, otlpprof-dbgsym_VERSION-1_ARCH.deb    the same as Debian packages
#   otlpprof-VERSION.jar and further jars     scripts/package-jars.sh
#   image/                                    the folder of the container image (scripts/package-image.sh)
#   SHA256SUMS                                the sums of all files except the files in image/
#
# Each RELEASE is a folder of scripts/build-release.sh. Without one, the releases of all platforms that this
# machine can build are built, which takes about five minutes each. Everything that is in DIR is replaced.
# The same commit gives the same bytes (scripts/test-reproducible.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/reproducible.sh

out=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package
if [ "${1:-}" = --out ]; then
    [ $# -ge 2 ] || { echo "package: --out needs a value" >&2 && exit 1; }
    out=$(realpath -m "$2")
    shift 2
fi
releases=("$@")
scripts/install-toolchain.sh rust cc jdk maven zig packaging
if [ ${#releases[@]} = 0 ]; then
    machines=("$(uname -m)")
    # A machine of the other architecture cannot build for x86_64.
    [ "$(uname -m)" = aarch64 ] || machines+=(aarch64)
    for machine in "${machines[@]}"; do
        releases+=("$(scripts/build-release.sh "$machine")" "$(scripts/build-release.sh "$machine-musl")")
    done
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=()

# Adds a platform's licenses to the licenses in the jar, which has the libraries of all platforms. A text that
# differs from the text of another platform gets a name of its own: add_licenses FOLDER PLATFORM
add_licenses() {
    local text all=$work/notices/all/licenses
    mkdir -p "$all"
    for text in "$1"/*; do
        if [ -f "$all/${text##*/}" ] && ! cmp -s "$text" "$all/${text##*/}"; then
            cp "$text" "$all/$2-${text##*/}"
        else
            cp "$text" "$all"
        fi
    done
}

platforms=()
for release in "${releases[@]}"; do
    platforms+=("$(scripts/elf-platform.sh "$release/libotlpprof.so")")
done
scripts/package-notices.sh "$work/notices" "${platforms[@]}"
scripts/package-shell-files.sh "$work/share" "${releases[@]}"
for i in "${!releases[@]}"; do
    release=${releases[i]} platform=${platforms[i]} notices=$work/notices/${platforms[i]}
    scripts/package-archive.sh "$release" "$notices" "$work/share" "$work/out" >&2
    case $platform in
    *-musl) ;;
    *) scripts/package-deb.sh "$release" "$notices" "$work/share" "$work/out" >&2 ;;
    esac
    cp "$notices/otlpprof.cdx.json" "$work/out/otlpprof-$VERSION-$platform.cdx.json"
    add_licenses "$notices/licenses" "$platform"
    libraries+=(--library "$release/libotlpprof.so")
done
scripts/package-jars.sh "${libraries[@]}" --notices "$work/notices/all" --out "$work/out" >&2
scripts/package-image.sh "$work/out" >&2
(cd "$work/out" && find . -maxdepth 1 -type f -printf '%P\n' | sort | xargs sha256sum >"$work/sums")
mv "$work/sums" "$work/out/SHA256SUMS"
rm -rf "$out"
mkdir -p "${out%/*}"
mv "$work/out" "$out"
echo "$out"
