#!/usr/bin/env bash
# Installs the tools that builds and tests for aarch64 need on an x86_64 machine: a C cross compiler,
# qemu-user, and Rust with that target's standard library. Writes the environment for their use to
# aarch64/environment in the cache.
#
# The standard library comes from rustup. If rustup cannot reach its server, the newest Rust of Debian 13's
# packages is unpacked into the cache and run with the C library from the same packages. Tools that
# exist are kept. If a tool cannot be installed, the script ends with a one-line message.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian-suite.sh

readonly TARGET=aarch64-unknown-linux-gnu
HOME_DIR=$(scripts/cache-folder.sh)/aarch64
readonly HOME_DIR
readonly RUST=$HOME_DIR/rust

scratch=
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

fail() {
    echo "install-aarch64: $*" >&2
    exit 1
}

# Whether the default Rust has the target's standard library, or rustup can install it.
has_target() {
    compgen -G "$(rustc --print target-libdir --target "$TARGET" 2>/dev/null)/libstd-*.rlib" >/dev/null &&
        return
    command -v rustup >/dev/null 2>&1 || return
    echo "install-aarch64: asking rustup for $TARGET" >&2
    timeout 120 rustup target add "$TARGET" </dev/null >/dev/null 2>&1 &&
        compgen -G "$(rustc --print target-libdir --target "$TARGET" 2>/dev/null)/libstd-*.rlib" >/dev/null
}

# Runs an apt command on Debian 13's lists for both architectures, apart from the system's own. Installs
# nothing.
debian() {
    apt_apart amd64,arm64 "$@"
}

# Writes a wrapper that runs a program of the unpacked Rust with that Rust's C library. Programs that it
# starts use the system's C library.
wrap() {
    cat >"$HOME_DIR/bin/$1" <<END
#!/bin/sh
exec "$RUST/usr/lib64/ld-linux-x86-64.so.2" --library-path "$RUST/usr/lib/x86_64-linux-gnu" \\
    --argv0 "$RUST/usr/bin/$1" "$RUST/usr/bin/$1" "\$@"
END
    chmod +x "$HOME_DIR/bin/$1"
}

install_debians_rust() {
    [ -x "$HOME_DIR/bin/rustc" ] && "$HOME_DIR/bin/rustc" -V >/dev/null 2>&1 && return
    local by_hand="install a Rust toolchain with the target $TARGET by hand"
    local mirror=http://deb.debian.org library said
    command -v apt-get >/dev/null 2>&1 || fail "rustup cannot add $TARGET, and there is no apt-get; $by_hand"
    echo "install-aarch64: rustup cannot add $TARGET; downloading Debian's Rust" >&2
    mkdir -p "$HOME_DIR"
    scratch=$(mktemp -d "$HOME_DIR/.download.XXXXXX")
    choose_suites "$mirror/debian trixie" "$mirror/debian trixie-updates" \
        "$mirror/debian-security trixie-security"
    mkdir "$scratch/rust"
    said=$(debian apt-get update 2>&1) ||
        fail "Debian's packages cannot be listed: $(tail -n1 <<<"$said" | cut -c 1-200)"
    library=$(debian apt-cache depends libstd-rust-web-dev |
        sed -n 's/^ *Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p')
    [ -n "$library" ] || fail "Debian has no rustc-web any more; $by_hand"
    said=$(debian apt-get install -y --download-only --no-install-recommends "$library" 2>&1 &&
        cd "$scratch/cache/archives" &&
        debian apt-get download rustc-web rust-web-clippy \
            libstd-rust-web-dev libstd-rust-web-dev:arm64 2>&1) ||
        fail "Debian's Rust cannot be downloaded: $(tail -n1 <<<"$said" | cut -c 1-200)"
    local package
    for package in "$scratch"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$scratch/rust"
    done
    rm -rf "$RUST"
    mv "$scratch/rust" "$RUST"
    mkdir -p "$HOME_DIR/bin"
    wrap clippy-driver
    wrap rustc
    "$HOME_DIR/bin/rustc" -V >/dev/null || fail "Debian's Rust does not run here; $by_hand"
}

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
[ "$(uname -m)" = x86_64 ] || fail "this is for x86_64 machines; elsewhere build and test as usual"
scripts/install-toolchain.sh rust cc cross
mkdir -p "$HOME_DIR"
{
    echo "export CARGO_BUILD_TARGET=$TARGET CARGO_TARGET_DIR='$PWD/target/aarch64'"
    echo "export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc"
    echo "export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'"
    if ! has_target; then
        install_debians_rust >&2
        echo "export RUSTC='$HOME_DIR/bin/rustc' CLIPPY_DRIVER='$HOME_DIR/bin/clippy-driver'"
    fi
} >"$HOME_DIR/environment.$$"
# Replaces the file atomically, so that concurrent readers and writers see a complete one.
mv "$HOME_DIR/environment.$$" "$HOME_DIR/environment"
