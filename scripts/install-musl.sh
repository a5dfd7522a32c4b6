#!/usr/bin/env bash
# Installs what builds for musl need, and prints the path of musl's C library, which is its loader too:
# scripts/install-musl.sh x86_64|aarch64 [SUITE]
#
# SUITE is one of Debian's: bookworm (musl 1.2.3), the default, or trixie (musl 1.2.5). The C library is
# unpacked from its package `musl` into the cache, and is not installed. Rust's standard library for musl
# comes from rustup. Needs a Debian system, whose mirror is used, and no root.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian-suite.sh

CACHE=$(scripts/cache-folder.sh)/musl
readonly CACHE

scratch=
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

fail() {
    echo "install-musl: $*" >&2
    exit 1
}

# Prints the last line of stdin, cut to 200 characters.
last_words() {
    tail -n1 | cut -c 1-200
}

# Whether Rust has the standard library of the target.
has_target() {
    compgen -G "$(rustc --print target-libdir --target "$triple" 2>/dev/null)/libstd-*.rlib" >/dev/null
}

install_target() {
    has_target && return
    local said by_hand="install a Rust toolchain with the target $triple by hand"
    command -v rustup >/dev/null 2>&1 || fail "there is no rustup to install $triple; $by_hand"
    echo "install-musl: asking rustup for $triple" >&2
    said=$(scripts/retry.sh timeout 120 rustup target add "$triple" 2>&1 </dev/null) && has_target ||
        fail "rustup cannot add $triple ($(last_words <<<"$said")); $by_hand"
}

install_c_library() {
    [ -f "$folder/lib/$loader" ] && return
    command -v apt-get >/dev/null || fail "this system has no apt-get to download Debian's musl with"
    local mirror said
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || fail "this system is no Debian, whose mirror would have musl"
    echo "install-musl: downloading musl of Debian $suite for $machine" >&2
    scratch=$(mktemp -d "$CACHE/.download.XXXXXX")
    choose_suites "$mirror $suite"
    said=$(apt_apart "$architecture" apt-get update -o APT::Update::Error-Mode=any 2>&1 &&
        cd "$scratch" && apt_apart "$architecture" apt-get download "musl:$architecture" 2>&1) ||
        fail "musl of Debian $suite cannot be downloaded: $(last_words <<<"$said")"
    dpkg-deb -x "$scratch"/musl_*.deb "$scratch/root"
    # The loader's name is a link, which may lead to another folder of the package.
    mkdir -p "$scratch/complete/lib"
    cp -L "$(find "$scratch/root" -name libc.so -type f)" "$scratch/complete/lib/$loader" ||
        fail "Debian's musl has no libc.so"
    mkdir -p "${folder%/*}"
    rm -rf "$folder"
    mv "$scratch/complete" "$folder"
}

suite=${2:-bookworm}
[ $# -ge 1 ] && [ $# -le 2 ] && [[ $suite =~ ^[a-z]+$ ]] ||
    fail "usage: scripts/install-musl.sh x86_64|aarch64 [SUITE]"
machine=$1
case $machine in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*) fail "the agent does not run on $machine, only on x86_64 or aarch64" ;;
esac
triple=$machine-unknown-linux-musl
loader=ld-musl-$machine.so.1
folder=$CACHE/$suite/$machine

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-toolchain.sh rust
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
install_target
install_c_library
echo "$folder/lib/$loader"
