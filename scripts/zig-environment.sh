# Sets the environment of `cargo zigbuild`, by which zig links; to be sourced in the project's folder, where
# scripts/install-toolchain.sh has installed zig. Sets $zig, zig's folder.

zig=$(scripts/cache-folder.sh)/zig
export PATH="$zig/bin:$PATH"
export CARGO_ZIGBUILD_PYTHON_PATH=$zig/bin/python3 CARGO_ZIGBUILD_CACHE_DIR=$zig/wrappers
# For musl, Rust links programs statically, and makes no shared libraries, unless it is asked to. So does zig.
dynamic="-Ctarget-feature=-crt-static -Clink-arg=-dynamic"
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS=$dynamic
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS=$dynamic
unset dynamic
