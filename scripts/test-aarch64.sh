#!/usr/bin/env bash
# Builds for aarch64 with warnings as errors, and runs the unit tests under qemu-user, including those of the
# walkers on recorded states. Arguments are passed to the unit tests. Takes some minutes the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(uname -m)" != x86_64 ]; then
    echo "test-aarch64: skipped, this is not an x86_64 machine" >&2
    exit
fi
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-aarch64.sh
. "$(scripts/cache-folder.sh)/aarch64/environment"

. scripts/aarch64-profile.sh

# Of the other tests, those whose code depends on the architecture. The code that they share, `testkit`, is
# compiled with them.
depends=target_arch
targets=(--lib --bins --benches --examples)
for file in tests/*.rs; do
    ! grep -q "$depends" "$file" || targets+=(--test "$(basename "$file" .rs)")
done
for file in tests/*/main.rs; do
    ! grep -rq "$depends" "$(dirname "$file")" || targets+=(--test "$(basename "$(dirname "$file")")")
done
if [ -n "${CLIPPY_DRIVER:-}" ]; then
    # This Rust has no cargo-clippy of its own; do the same as cargo-clippy.
    RUSTC_WORKSPACE_WRAPPER=$CLIPPY_DRIVER CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__" \
        cargo check --locked "${profile[@]}" "${targets[@]}" </dev/null
else
    cargo clippy --locked "${profile[@]}" "${targets[@]}" -- -D warnings </dev/null
fi
# Tests that fail because qemu-user differs from the kernel: vDSO, process_vm_readv, file limits, blocked
# signals.
emulated=(
    --skip objects::scan::tests::the_vdso_is_the_same_by_list_and_by_header
    --skip process_memory::tests::reads_up_to_a_hole_and_not_into_it
    --skip file::tests::a_write_that_breaks_off_leaves_nothing
    --skip process_context::tests::the_process_context_is_single_and_removed_with_its_owner
    --skip clock::tests::the_clock_agrees_with_the_kernel_and_fails_like_the_system_call
    --skip vdso::tests::the_process_s_own_has_a_clock_and_nothing_else_is_found
    --skip
    own_threads::tests::all_signals_but_those_of_faults_are_blocked_in_it_and_in_its_own_threads
)
cargo test --locked "${profile[@]}" --lib -- "${emulated[@]}" "$@" </dev/null
# Walks of real stacks, through the C library's call frame information and a signal frame.
cargo test --locked "${profile[@]}" --test elf_walk </dev/null
