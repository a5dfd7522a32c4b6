#!/usr/bin/env bash
# Builds the native libraries and the Java classes that tests load (the package
# `otlpprof-testkit-products`), and prints their folder: scripts/build-testkit.sh
#
# They are the same in every profile.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-toolchain.sh rust cc jdk >&2
cargo build --locked --quiet --package otlpprof-testkit-products </dev/null >&2
realpath "${CARGO_TARGET_DIR:-target}/debug"
