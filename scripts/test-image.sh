#!/usr/bin/env bash
# Runs the image for init containers, and a JVM with the agent that the image has copied:
# scripts/test-image.sh FOLDER
#
# FOLDER is one of scripts/package-image.sh. If docker, podman or buildah has a builder here, it has built the
# image. Otherwise this script carries out the Dockerfile's instructions on a tree of its own, with Debian's
# busybox in place of the base, and runs the image's command in it by chroot. Needs root then, and a Debian
# mirror to download busybox from.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "test-image: $*" >&2
    exit 1
}

[ $# = 1 ] && [ -f "$1/Dockerfile" ] || fail "usage: scripts/test-image.sh FOLDER"
folder=$(realpath "$1")
case $(uname -m) in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*) fail "there is no image for $(uname -m)" ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shared=$work/volume
mkdir "$shared"

# Makes a tree like the base's, with busybox's commands that images use: make_base ROOT
make_base() {
    local scratch=$work/apt busybox said
    busybox=$(scripts/cache-folder.sh)/busybox-static
    mkdir -p "$scratch" "$1/bin"
    if [ ! -x "$busybox" ]; then
        said=$(cd "$scratch" && apt-get -qq -o Acquire::Retries=3 download busybox-static 2>&1) ||
            fail "busybox cannot be downloaded: $(tail -n1 <<<"$said")"
        dpkg-deb -x "$scratch"/busybox-static_*.deb "$scratch/busybox"
        # Debian has moved /bin to /usr/bin.
        find "$scratch/busybox" -name busybox -type f -perm -u+x -exec cp {} "$busybox.$$" \;
        mv "$busybox.$$" "$busybox"
    fi
    cp "$busybox" "$1/bin/busybox"
    ln "$1/bin/busybox" "$1/bin/cp"
}

# Carries out a Dockerfile's instructions, and prints the image's command, a word a line: build ROOT
build() {
    local root=$1 instruction arguments words
    while read -r instruction arguments; do
        arguments=${arguments//'${TARGETARCH}'/$architecture}
        case $instruction in
        "" | "#"* | ARG) ;;
        FROM) make_base "$root" ;;
        COPY)
            read -ra words <<<"$arguments"
            [ ${#words[@]} = 2 ] || fail "unknown form of COPY: $arguments"
            mkdir -p "$root${words[1]}"
            cp -a "$folder/${words[0]}/." "$root${words[1]}"
            ;;
        CMD) python3 -c 'import json, sys; print(*json.loads(sys.argv[1]), sep="\n")' "$arguments" ;;
        *) fail "unknown instruction: $instruction" ;;
        esac
    done <"$folder/Dockerfile"
}

. scripts/reproducible.sh
builder=
for name in docker podman; do
    ! "$name" image inspect "otlpprof:$VERSION" >/dev/null 2>&1 || builder=$name
done
if [ -n "$builder" ]; then
    "$builder" run --rm --volume "$shared:/shared" "otlpprof:$VERSION"
else
    [ "$(id -u)" = 0 ] || fail "needs root for chroot, where there is no docker or podman"
    build "$work/root" >"$work/command"
    mapfile -t command <"$work/command"
    mkdir "$work/root/shared"
    # The volume is mounted in a namespace of its own, with which the mount ends.
    unshare --mount --fork bash -euc '
        mount --bind "$1" "$2/shared"
        exec chroot "$2" "${@:3}"' bash "$shared" "$work/root" "${command[@]}"
fi

[ -f "$shared/lib/libotlpprof.so" ] || fail "the image has copied no library: $(ls "$shared")"
for agent in "-agentpath:$shared/lib/libotlpprof.so" "-javaagent:$shared/otlpprof.jar"; do
    scripts/test-agent-option.sh "$shared/bin/otlpprof" "$agent"
done
echo "test-image: the agent of the image runs${builder:+ ($builder)}"
