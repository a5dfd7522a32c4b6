#!/usr/bin/env bash
# Installs what the tests need and is missing, then runs all of them. Arguments go to `cargo test`.
#
# Everything is of the dev profile (optimised dependencies): tests, agent and command share one build, and the
# integration tests load the agent that was built with them.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-toolchain.sh rust cc jdk python go openssl maven allocators
scripts/install-jdks.sh
# Tests call these themselves; here their first run, which downloads, fails by its own name.
scripts/collector.sh >/dev/null
scripts/python-oracle.sh
cargo test --locked --no-fail-fast "$@" </dev/null
