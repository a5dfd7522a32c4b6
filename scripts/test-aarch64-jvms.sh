#!/usr/bin/env bash
# Runs the agent for aarch64 in real JVMs for aarch64, under qemu-user on an x86_64 machine:
# scripts/test-aarch64-jvms.sh [--all] [TEST]...
#
#   --all  JDK 17, 21, 25, 26 and 27, and all tests that an emulator can pass, for hours. Without it: JDK 25,
#          and a few tests: the sample and the mixed program with every walker, virtual threads and contexts,
#          for minutes.
#   TEST   tests to run in place of those, by a part of their name.
#
# The JDKs come from Debian, by scripts/install-debian-jdks.sh. The agent and the libraries of tests are those
# that scripts/test-aarch64.sh builds. The tests are in tests/agent, compiled into a program of this machine
# that starts the emulator in place of a JVM. THREADS tests run at a time, by default as many as there are
# processors.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "test-aarch64-jvms: $*" >&2
    exit 1
}

# The release of which JDKs are tested without --all: the newest with long-term support.
readonly RELEASE=25
readonly RELEASES=(17 21 25 26 27)

readonly FEW=(
    by_timers::
    contexts::a_context_that_is_replaced_is_whole_or_none_in_every_sample
    contexts::no_sample_shows_a_mixture_however_fast_contexts_change
    virtual_threads::every_walker_walks_frozen_frames
    virtual_threads::the_carriers_frames_follow_in_vmx
    walkers::vm_has_native_frames_on_top_alone
    walkers::vmx_has_every_native_frame
    walkers::walker_no_has_only_java_frames_and_loses_no_time
)
readonly ALL=(
    broken_stacks::
    by_timers::
    contexts::
    interpreted_leaves::
    java_frames::
    native_frames::
    situations::
    thread_names::
    virtual_contexts::
    virtual_threads::
    walkers::
)

# The tests of ALL that cannot pass, below the reason. docs/compatibility.md has the list of what an emulator
# cannot show. Tests outside of ALL concern the kernel's events, processes beside the JVM, attaching, and
# code that does not depend on the architecture.
readonly NOT_EMULATED=(
    # By frame pointers through code that has none, which has a caller only on x86_64: on aarch64 a call
    # leaves the return address in a register. by_timers:: walks code with frame pointers.
    walkers::fp_has_the_frames_of_a_library_with_and_without_frame_pointers
    walkers::native_frames_are_remote_in_every_walker
    # Millions of calls from Java take an emulated JVM longer than a test waits.
    contexts::ten_million_ids_lose_no_endpoint
    contexts::where_the_dictionary_is_full_one_attribute_is_dropped_and_the_rest_works
    virtual_contexts::many_thousand_virtual_threads_take_their_spans_along
)

all=
tests=()
for argument in "$@"; do
    case "$argument" in
    --all) all=1 ;;
    -*) fail "usage: scripts/test-aarch64-jvms.sh [--all] [TEST]..." ;;
    *) tests+=("$argument") ;;
    esac
done

if [ "$(uname -m)" != x86_64 ]; then
    echo "test-aarch64-jvms: skipped, this is not an x86_64 machine" >&2
    exit
fi
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-toolchain.sh rust cc jdk python
scripts/install-aarch64.sh

releases=("$RELEASE")
[ -z "$all" ] || releases=("${RELEASES[@]}")
jdks=$(scripts/install-debian-jdks.sh --arm64 "${releases[@]}")
scripts/python-oracle.sh </dev/null

# Builds the agent for aarch64, and puts it beside the libraries that tests load.
build=$PWD/target/aarch64-jvms
(
    . "$(scripts/cache-folder.sh)/aarch64/environment"
    . scripts/aarch64-profile.sh
    # The program of tests is not run. With it the agent is built as scripts/test-aarch64.sh builds it.
    cargo test --locked "${profile[@]}" --test elf_walk --no-run </dev/null
    built=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug
    mkdir -p "$build"
    # Under other names first: a running JVM may have the old files mapped.
    for library in deps/libotlpprof.so libddproftest.so libddproftest-fp.so libvmdamage.so; do
        cp "$built/$library" "$build/new"
        mv "$build/new" "$build/${library##*/}"
    done
)

if [ ${#tests[@]} -eq 0 ]; then
    tests=("${FEW[@]}")
    [ -z "$all" ] || tests=("${ALL[@]}")
    for name in "${NOT_EMULATED[@]}"; do
        tests+=(--skip "$name")
    done
fi
# CI requires JDKs of every version, and perf events.
unset CI
# One JDK at a time: of several, most tests take only the newest.
status=0
for jdk in ${jdks//:/ }; do
    echo "test-aarch64-jvms: $(basename "$jdk")"
    OTLPPROF_TEST_JDKS=$jdk OTLPPROF_TEST_BUILD=$build RUST_TEST_THREADS=${THREADS:-$(nproc)} \
        cargo test --locked --test agent -- "${tests[@]}" </dev/null || status=$?
done
exit "$status"
