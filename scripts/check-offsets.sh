#!/usr/bin/env bash
# Compares the offsets and sizes that the agent reads from a running HotSpot with the offsets and sizes in
# HotSpot's debug information: scripts/check-offsets.sh [RELEASE...]
#
#   RELEASE  a feature release of Debian unstable; without any, all that the agent knows, and 28. Each one
#            downloads about 400 MB.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-toolchain.sh rust cc jdk gdb
releases=("$@")
[ $# -gt 0 ] || releases=(11 17 21 25 26 27 28)
homes=$(scripts/install-debian-jdks.sh --full "${releases[@]}")
# CI requires JDKs of every version.
unset CI
OTLPPROF_TEST_JDKS=$homes cargo test --locked --test jvm_layout -- \
    --ignored --exact --nocapture offsets_are_those_of_the_debug_information </dev/null
