#!/usr/bin/env bash
# Installs the missing tools that the tests need, then runs all tests: scripts/test.sh [ARGUMENT...]
#
# Arguments are passed to `cargo test`, which then runs one file of tests after another. Without arguments,
# LANES (2) files run at a time: most tests wait for a JVM more than they use a processor. The output of a
# file is printed as a whole at its end.
#
# Everything uses the dev profile (optimised dependencies): tests, agent and command share one build, and the
# integration tests load the agent from that build.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-toolchain.sh rust cc jdk python go openssl maven allocators llvm
scripts/install-jdks.sh
# Tests call these scripts themselves. Calling them here first gives a failed download its own name.
scripts/collector.sh >/dev/null
scripts/python-oracle.sh
scripts/debug-objects.sh >/dev/null
if [ $# -gt 0 ]; then
    exec cargo test --locked --no-fail-fast "$@" </dev/null
fi

cargo test --locked --no-run </dev/null
outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
export outputs

# Runs the tests that an option of `cargo test` selects, and prints their output.
run() {
    local status=0 output
    output=$outputs/$$
    # shellcheck disable=SC2086 # The option and its value are two words.
    cargo test --locked --no-fail-fast $1 </dev/null >"$output" 2>&1 || status=$?
    exec 9>"$outputs/lock"
    flock 9
    cat "$output"
    [ "$status" -eq 0 ] || echo "FAILED: cargo test $1" | tee -a "$outputs/failed"
    return "$status"
}
export -f run

# The longest file is among the first: its name begins with agent_, as most do.
{
    echo --lib
    find tests -maxdepth 1 -name '*.rs' -printf '--test %f\n' | sed 's/\.rs$//' | sort
    echo --doc
} | xargs -P "${LANES:-2}" -d '\n' -n 1 bash -c 'run "$1"' run || {
    cat "$outputs/failed"
    exit 1
}
