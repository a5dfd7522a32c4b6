# Makes builds and artifacts independent of folders, time and settings; to be sourced in the project's folder.
# Sets VERSION, which artifacts have in their names, and SOURCE_DATE_EPOCH, the time of every file in an
# archive, in seconds: the time of the commit.

VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    # Without git, as in an archive of the sources, the time of the changelog.
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
fi
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C
umask 022

# Has rustc and zig's C compiler write the same names of folders into debug information wherever the build is:
# reproducible_paths TARGET_FOLDER TRIPLE
reproducible_paths() {
    local registry pair rust_flags=() c_flags="#"
    # In this order: of several prefixes that fit, the last one counts.
    local names=("$PWD=/usr/src/otlpprof" "$1=/usr/src/otlpprof/target")
    # The cache, which has zig's C code, may be outside of the checkout.
    names+=("$(scripts/cache-folder.sh)/zig=/usr/src/otlpprof/.cache/zig")
    # A registry's folder has a name that depends on its address. `cargo fetch` makes it.
    cargo fetch --locked --quiet --target "$2" </dev/null >&2
    for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
        names+=("$registry=/usr/src/crates")
    done
    for pair in "${names[@]}"; do
        rust_flags+=("--remap-path-prefix=$pair")
        c_flags+=" +-ffile-prefix-map=$pair"
    done
    # A wrapper adds the flags. In RUSTFLAGS they would change the names of cargo's folders, which are in
    # debug information too.
    OTLPPROF_RUSTC_FLAGS=$(printf '%s\n' "${rust_flags[@]}")
    export OTLPPROF_RUSTC_FLAGS RUSTC_WRAPPER=$PWD/scripts/rustc-with-flags.sh
    # clang adds these flags for the C code of zig's own as well, which CFLAGS does not reach.
    export CCC_OVERRIDE_OPTIONS=$c_flags
}
