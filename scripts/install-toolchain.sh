#!/usr/bin/env bash
# Installs those of the named tools that are missing: scripts/install-toolchain.sh [rust] [cc] [jdk] [python] [go]
#
#   rust     cargo, rustfmt and clippy, through rustup
#   cc       a C compiler and binutils (addr2line, readelf)
#   jdk      a JDK with javac
#   python   a virtual environment with pip in .cache/venv
#   go       a Go compiler (builds the collector that tests upload to), in .cache/go
#
# Without a name: the first four. Nothing happens for what is there. System packages need Debian and root or sudo.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the collector of scripts/collector.sh asks for.
readonly GO_VERSION=1.25.0

fail() {
    echo "install-toolchain: $*" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Installs Debian packages. Reads nothing from stdin.
apt_install() {
    has apt-get || fail "missing: $*; install them by hand (apt-get was not found)"
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        has sudo || fail "missing: $*; run as root or install sudo"
        as_root=(sudo)
    fi
    echo "install-toolchain: installing $*" >&2
    "${as_root[@]}" apt-get update -qq </dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

install_rust() {
    export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    if ! has cargo; then
        has curl || apt_install curl ca-certificates
        echo "install-toolchain: installing Rust through rustup" >&2
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
            sh -s -- -y --quiet --profile minimal --component rustfmt --component clippy >&2
    fi
    if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        has rustup || fail "cargo fmt or cargo clippy is missing, and there is no rustup to install it with"
        rustup component add rustfmt clippy >&2
    fi
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(rustc --version | cut -d' ' -f2)
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n1)" = "$wanted" ] ||
        fail "Rust $found is too old: $wanted is needed (rustup update stable)"
}

install_cc() {
    has cc && has addr2line && has readelf || apt_install gcc libc6-dev binutils
}

# The same places as build.rs looks in.
install_jdk() {
    has javac && return
    [ -x "${JAVA_HOME:-/nonexistent}/bin/javac" ] && return
    compgen -G '/usr/lib/jvm/*/bin/javac' >/dev/null && return
    apt_install openjdk-17-jdk-headless
}

install_python() {
    [ -x .cache/venv/bin/pip ] && .cache/venv/bin/python -c '' 2>/dev/null && return
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv
    mkdir -p .cache
    python3 -m venv --clear .cache/venv
}

# Debian's is too old for the collector, and before 1.21 did not fetch a newer one by itself.
install_go() {
    export PATH="$PATH:/usr/local/go/bin:$PWD/.cache/go/bin"
    local found work
    found=$(go env GOVERSION 2>/dev/null || true)
    [ "$(printf '%s\n' "go$GO_VERSION" "$found" | sort -V | head -n1)" = "go$GO_VERSION" ] && return
    has curl || apt_install curl ca-certificates
    echo "install-toolchain: downloading Go $GO_VERSION" >&2
    mkdir -p .cache
    work=$(mktemp -d .cache/go.XXXXXX)
    curl --proto '=https' --tlsv1.2 -sSfL "https://go.dev/dl/go$GO_VERSION.linux-amd64.tar.gz" | tar -xz -C "$work" ||
        fail "Go $GO_VERSION cannot be had from go.dev; install Go by hand"
    rm -rf .cache/go
    mv "$work/go" .cache/go
    rmdir "$work"
}

[ $# -gt 0 ] || set -- rust cc jdk python
for tool in "$@"; do
    case "$tool" in
    rust | cc | jdk | python | go) "install_$tool" ;;
    *) fail "unknown tool '$tool': one of rust cc jdk python go" ;;
    esac
done
