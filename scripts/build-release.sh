#!/usr/bin/env bash
# Builds the release: scripts/build-release.sh [x86_64|aarch64|x86_64-musl|aarch64-musl]
#
# Builds the library and the command for one architecture and C library, by default this machine's
# architecture and glibc. They load on every Linux with glibc 2.17 (2012) or later, independently of this
# machine's glibc: zig links them against the symbols of glibc 2.17, and scripts/check-loads.sh checks the
# result. With -musl they load where musl is the C library, of version 1.2.3 (2022) or later. Prints the
# folder of the result. Its folder .build-id has their debug files.
set -euo pipefail
cd "$(dirname "$0")/.."

# The glibc of RHEL 7, and the first version for aarch64.
readonly GLIBC=2.17

fail() {
    echo "build-release: $*" >&2
    exit 1
}

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
platform=${1:-$(uname -m)}
machine=${platform%-musl}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
case $platform in
x86_64 | aarch64) triple=$machine-unknown-linux-gnu ;;
x86_64-musl | aarch64-musl) triple=$machine-unknown-linux-musl ;;
*) fail "the agent does not run on $platform, only on x86_64 or aarch64, each alone or with -musl" ;;
esac

scripts/install-toolchain.sh rust cc jdk zig
# The C library that the result is checked against, and the target as cargo-zigbuild takes it.
c_library=$GLIBC zig_target=$triple.$GLIBC
if [ "$platform" != "$machine" ]; then
    c_library=$(scripts/install-musl.sh "$machine")
    zig_target=$triple
elif [ "$machine" != "$(uname -m)" ]; then
    [ "$machine" = aarch64 ] || fail "$machine can only be built on a machine of that architecture"
    # Provides the target's standard library; if rustup cannot get it, another Rust that has it.
    scripts/install-aarch64.sh
    . "$(scripts/cache-folder.sh)/aarch64/environment"
    unset CARGO_BUILD_TARGET CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER
fi
. scripts/zig-environment.sh
export OTLPPROF_PORTABLE=true CARGO_TARGET_DIR=$target
. scripts/reproducible.sh
reproducible_paths "$target" "$triple"
# A cache of its own: zig does not know that the flags of reproducible_paths change the cached objects.
export ZIG_GLOBAL_CACHE_DIR=$zig/release-cache ZIG_LOCAL_CACHE_DIR=$zig/release-cache
# Line tables, which scripts/split-symbols.sh moves into debug files.
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none
cargo zigbuild --release --locked --quiet --target "$zig_target" </dev/null >&2
scripts/split-symbols.sh "$target/$triple/release" libotlpprof.so otlpprof >&2
scripts/check-loads.sh "$c_library" "$target/$triple/release/libotlpprof.so" \
    "$target/$triple/release/otlpprof" >&2
echo "$target/$triple/release"
