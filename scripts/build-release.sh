#!/usr/bin/env bash
# Builds the release: scripts/build-release.sh [x86_64|aarch64]
#
# Builds the library and the command for one architecture, by default this machine's. They load on every Linux
# with glibc 2.17 (2012) or later, independently of this machine's glibc: zig links them against the symbols
# of glibc 2.17, and scripts/check-loads.sh checks the result. Prints the folder of the result. For this
# machine's architecture the folder also contains the files that scripts/demo.sh and scripts/soak.sh need: the
# test libraries and the Java classes.
set -euo pipefail
cd "$(dirname "$0")/.."

# The glibc of RHEL 7, and the first version for aarch64.
readonly GLIBC=2.17

fail() {
    echo "build-release: $*" >&2
    exit 1
}

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
machine=${1:-$(uname -m)}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
case $machine in
x86_64 | aarch64) triple=$machine-unknown-linux-gnu ;;
*) fail "the agent does not run on $machine, only on x86_64 or aarch64" ;;
esac

scripts/install-toolchain.sh rust cc jdk zig
if [ "$machine" != "$(uname -m)" ]; then
    [ "$machine" = aarch64 ] || fail "$machine can only be built on a machine of that architecture"
    # Provides the target's standard library; if rustup cannot get it, another Rust that has it.
    scripts/install-aarch64.sh
    . "$(scripts/cache-folder.sh)/aarch64/environment"
    unset CARGO_BUILD_TARGET CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER
fi
zig=$(scripts/cache-folder.sh)/zig
export PATH="$zig/bin:$PATH"
export OTLPPROF_PORTABLE=true CARGO_TARGET_DIR=$target
export CARGO_ZIGBUILD_PYTHON_PATH=$zig/bin/python3 CARGO_ZIGBUILD_CACHE_DIR=$zig/wrappers
export ZIG_GLOBAL_CACHE_DIR=$zig/cache ZIG_LOCAL_CACHE_DIR=$zig/cache
cargo zigbuild --release --locked --quiet --target "$triple.$GLIBC" </dev/null >&2
scripts/check-loads.sh "$GLIBC" "$target/$triple/release/libotlpprof.so" \
    "$target/$triple/release/otlpprof" >&2
echo "$target/$triple/release"
