#!/usr/bin/env bash
# Runs cargo such that this workspace's crates know nothing that is new in HotSpot 26 and later, neither names
# nor numbers nor forms of code: scripts/without-rules-of-26.sh ARGUMENT...
#
# The agent must then find in the VM what it would have known. A build without debug assertions, such as one
# for users, is refused. The builds have a target folder of their own, below the folder of other builds: the
# agent's file has the same name, so that other tests would load it.
set -euo pipefail
cd "$(dirname "$0")/.."

export OTLPPROF_RUSTC_FLAGS='--cfg=without_rules_of_26'
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/rustc-with-flags.sh
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/without-rules-of-26
exec cargo "$@"
