#!/usr/bin/env bash
# Writes the notices that belong to releases: scripts/package-notices.sh OUT PLATFORM...
#
#   OUT/PLATFORM/licenses            the licenses of all that is linked in: crates, Rust's standard library,
#                                    and the parts that zig adds
#   OUT/PLATFORM/otlpprof.cdx.json   the software bill of materials (CycloneDX): the crates that are linked in
#
# PLATFORM is as scripts/elf-platform.sh prints it. Needs the tools `packaging` and `zig` of
# scripts/install-toolchain.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/reproducible.sh

fail() {
    echo "package-notices: $*" >&2
    exit 1
}

[ $# -ge 2 ] || fail "usage: scripts/package-notices.sh OUT PLATFORM..."
out=$1
shift
cache=$(scripts/cache-folder.sh)
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$cache/packaging/bin:$PATH"
zig=$(echo "$cache"/zig/lib/python3*/site-packages/ziglang)
sysroot=$(rustc --print sysroot)
# cargo-cyclonedx writes beside the Cargo.toml of each crate of the workspace.
sbom=.sbom-$$
work=$(mktemp -d)
trap 'rm -rf "$work" "$sbom.json" crates/*/"$sbom.json"' EXIT

# The crates of all platforms, whichever are packaged: the text takes minutes, and hardly differs.
cargo fetch --locked --quiet </dev/null >&2
targets=()
for triple in {x86_64,aarch64}-unknown-linux-{gnu,musl}; do
    targets+=(--target "$triple")
done
# --frozen: the texts come from the crates, and nothing is asked of a server.
cargo about -L error generate --frozen --fail --config packaging/about.toml "${targets[@]}" \
    --output-file "$work/crates.txt" packaging/about.hbs </dev/null

for platform in "$@"; do
    [[ $platform =~ ^linux-(x86_64|aarch64)(-musl)?$ ]] || fail "unknown platform: $platform"
    triple=${BASH_REMATCH[1]}-unknown-linux-gnu
    c_library=$zig/lib/libc/glibc/LICENSES
    if [ -n "${BASH_REMATCH[2]}" ]; then
        triple=${triple/%gnu/musl}
        c_library=$zig/lib/libc/musl/COPYRIGHT
    fi
    licenses=$out/$platform/licenses
    rm -rf "$licenses"
    mkdir -p "$licenses"
    cp "$work/crates.txt" "$licenses"
    # Rust's notices are beside its compiler, or in Debian's package of its standard library.
    if [ -f "$sysroot/share/doc/rust/COPYRIGHT-library.html" ]; then
        cp "$sysroot/share/doc/rust/COPYRIGHT-library.html" "$licenses/rust-standard-library.html"
    else
        cp "$sysroot/share/doc/libstd-rust-web-dev/copyright" "$licenses/rust-standard-library.txt"
    fi
    cp "$zig/LICENSE" "$licenses/zig-compiler-rt.txt"
    cp "$zig/lib/libunwind/LICENSE.TXT" "$licenses/llvm-libunwind.txt"
    # Every program and library has start files of the C library.
    cp "$c_library" "$licenses/c-library.txt"

    cargo cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps --target "$triple" \
        --override-filename "$sbom" </dev/null
    cargo tree --locked --package otlpprof --edges normal,no-proc-macro --target "$triple" --prefix none \
        --format '{p}' |
        python3 scripts/linked_sbom.py "$sbom.json" "$(rustc --version | cut -d' ' -f2)" \
            >"$out/$platform/otlpprof.cdx.json"
done
