#!/usr/bin/env bash
# Installs the missing tools that the tests need, then runs all tests. Arguments are passed to `cargo test`.
#
# Everything uses the dev profile (optimised dependencies): tests, agent and command share one build, and the
# integration tests load the agent from that build.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-toolchain.sh rust cc jdk python go openssl maven allocators
scripts/install-jdks.sh
# Tests call these scripts themselves. Calling them here first gives a failed download its own name.
scripts/collector.sh >/dev/null
scripts/python-oracle.sh
cargo test --locked --no-fail-fast "$@" </dev/null
