#!/usr/bin/env bash
# Installs the missing tools that the tests need, then runs the tests:
#
#   scripts/test.sh                 each behaviour once, on the newest JDK that has it
#   scripts/test.sh ARGUMENT...     a part of them, by arguments of `cargo nextest run`: a part of a name, -E
#   scripts/test.sh --long [NAME]   everything (scripts/test-long.sh)
#
# A test that fails is run again, alone, up to two times, unless its assertion must always hold. Tests that
# pass then are listed as FLAKY at the end, and in target/nextest/flaky. .config/nextest.toml says which tests
# have no second try, which run alone, and after how long a test is ended.
#
# Everything uses the dev profile (optimised dependencies): tests, agent and command share one build, and the
# integration tests load the agent from that build.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --long ]; then
    shift
    exec scripts/test-long.sh "$@"
fi
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:$(scripts/cache-folder.sh)/bin"
scripts/install-toolchain.sh rust cc jdk python go openssl maven allocators llvm elfutils nextest
scripts/install-jdks.sh
# Tests call these scripts themselves. Calling them here first gives a failed download its own name.
scripts/collector.sh >/dev/null
scripts/python-oracle.sh </dev/null
scripts/debug-objects.sh >/dev/null

results=$(realpath -m "${CARGO_TARGET_DIR:-target}")/nextest
# The status of `cargo nextest` if a test has failed.
readonly TEST_FAILED=100
rm -rf "$results"/{ci,again,flaky}
status=0
cargo nextest run --locked --profile ci "$@" </dev/null || status=$?
if [ "$status" = "$TEST_FAILED" ]; then
    echo "== the failed tests again, alone"
    failed=$(scripts/second_try.py filter "$results/ci/junit.xml")
    cargo nextest run --locked --profile again -E "$failed" </dev/null || true
    status=0
    scripts/second_try.py judge "$results"/{ci,again}/junit.xml "$results/flaky" || status=1
fi
if [ $# = 0 ]; then
    cargo test --locked --doc </dev/null || status=1
fi
exit "$status"
