#!/usr/bin/env bash
# Tests on musl: scripts/test-musl.sh [--host RELEASE] [SUITE]
#
# Runs the unit tests, and those tests of programs whose subject depends on the C library, with the loader and
# the C library of Debian's package `musl`. SUITE is one of Debian's, as scripts/install-musl.sh takes it: the
# suites have different releases of musl. Then runs native/muslhost, a program in C that loads the agent, and
# prints for each of its works the share of samples whose stack is whole.
#
#   --host RELEASE  runs that program alone, with a folder of scripts/build-release.sh x86_64-musl
#
# No JVM for musl is to be had, so no test of the agent in a JVM is run. Takes some minutes the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "test-musl: $*" >&2
    exit 1
}

# Tests that fail on musl, each after a comment with the reason: --skip NAME.
skipped=(
    # The two ways to the vDSO give it different names.
    --skip objects::scan::tests::the_vdso_is_the_same_by_list_and_by_header
)
# The programs of tests about the C library: the starts of threads, the loader's list, unwinding, signals.
programs=(
    sampling_accounting
    sampling_blocked_signals
    sampling_foreign_signals
    sampling_interruptions
    sampling_process
    sampling_slow_handlers
    sampling_threads
    sampling_warm_up
)

# The works of native/muslhost, which are names of threads; the profile that shows each; the least percentage
# of stacks that must be whole. musl has no call frame information, so callers of its larger functions are not
# always found: 0 stands for works of which nothing is promised.
works=(
    "spin cpu 98"
    "callback cpu 0"
    "sort cpu 0"
    "copy cpu 98"
    "format cpu 0"
    "parse cpu 0"
    "allocate cpu 95"
    "system_calls cpu 80"
    "raise cpu 0"
    "timer_signal cpu 98"
    "alternate_stack cpu 0"
    "sleep wall 95"
    "timed_wait wall 0"
    "semaphore wall 0"
)

release=
if [ "${1:-}" = --host ]; then
    [ -f "${2:-}/libotlpprof.so" ] || fail "usage: scripts/test-musl.sh [--host RELEASE] [SUITE]"
    release=$(realpath "$2")
    shift 2
fi
[ $# -le 1 ] || fail "usage: scripts/test-musl.sh [--host RELEASE] [SUITE]"
if [ "$(uname -m)" != x86_64 ]; then
    echo "test-musl: skipped, this is not an x86_64 machine" >&2
    exit
fi
triple=x86_64-unknown-linux-musl
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
scripts/install-toolchain.sh rust cc jdk zig
library=$(scripts/install-musl.sh x86_64 "$@")
. scripts/zig-environment.sh
export ZIG_GLOBAL_CACHE_DIR=$zig/test-cache ZIG_LOCAL_CACHE_DIR=$zig/test-cache
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR

# Programs name this copy as their loader, whichever SUITE it comes from: another name would build everything
# again. The loader's own command would be the program that a test finds in /proc/self/exe.
mkdir -p "$CARGO_TARGET_DIR/musl"
loader=$CARGO_TARGET_DIR/musl/ld-musl-x86_64.so.1
cp "$library" "$loader.new"
mv "$loader.new" "$loader"
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS
CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS+=" -Clink-arg=-Wl,--dynamic-linker=$loader"

# Prints the home of a JDK that has the headers of JVMTI.
find_jdk() {
    local home javac
    javac=$(command -v javac || true)
    javac=$(realpath -m "${javac:-/none/bin/javac}")
    for home in "${JAVA_HOME:-}" "${javac%/bin/javac}" /usr/lib/jvm/*; do
        if [ -f "$home/include/jvmti.h" ]; then
            echo "$home"
            return
        fi
    done
    fail "no JDK with include/jvmti.h (scripts/install-toolchain.sh jdk)"
}

# Runs the program in C with the agent of a folder, and prints the share of whole stacks of each work. A stack
# is whole if it leads from the work to the thread's start, or to the start of the program.
run_host() {
    # Bracket expressions, since awk takes backslashes out of values.
    local release=$1 work jdk root='[[]ld-musl-x86_64[.]so[.]1[+]0x[0-9a-f]+[]];'
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # The folder's name is expanded now.
    trap "rm -rf '$work'" EXIT
    jdk=$(find_jdk)
    python3 -m ziglang cc -target x86_64-linux-musl -dynamic "-Wl,--dynamic-linker=$loader" \
        -std=gnu11 -O2 -g -Wall -Wextra -Werror -I "$jdk/include" -I "$jdk/include/linux" \
        native/muslhost/*.c -o "$work/muslhost"
    timeout 120 "$work/muslhost" "$release/libotlpprof.so" \
        "file=$work/profile.otlp,cpu=1ms,wall=5ms,budget=off" 300 >"$work/log" 2>&1 </dev/null ||
        fail "the program in C fails ($?): $(cat "$work/log")"
    ! grep -F '[otlpprof] error' "$work/log" || fail "the agent reports an error: $(cat "$work/log")"
    # The program is no HotSpot, as a JVM of Eclipse OpenJ9 is none. One line says what is missing.
    [ "$(grep -cF '[otlpprof] warning' "$work/log")" = 1 ] && grep -q 'no Java frames$' "$work/log" ||
        fail "the agent does not say in one line that there are no Java frames: $(cat "$work/log")"
    # The loader's command runs the profiler's, which names the system's loader, that is not installed.
    "$loader" "$release/otlpprof" validate "$work/profile.otlp" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
    local line name type least share below=
    for line in "${works[@]}"; do
        read -r name type least <<<"$line"
        "$loader" "$release/otlpprof" export --to collapsed --type "$type" --thread "$name" \
            -o "$work/$name" "$work/profile.otlp" >/dev/null 2>&1 || fail "no samples of $name"
        share=$(awk -v whole="^${root}thread_routine;work_$name(;| )" '
            { all += $NF }
            $0 ~ whole { reached += $NF }
            END { printf "%.1f", all ? 100 * reached / all : 0 }' "$work/$name")
        printf 'test-musl: %5s %% of the stacks of %s (%s) are whole, at least %s %% are expected\n' \
            "$share" "$name" "$type" "$least"
        [ "${share%.*}" -ge "$least" ] || below+=" $name"
    done
    [ -z "$below" ] || fail "stacks are not whole as expected:$below"
}

if [ -n "$release" ]; then
    run_host "$release"
    exit
fi
# Dependencies are tested elsewhere, so compile them as fast as possible.
profile=(--config 'profile.dev.opt-level=1')
for crate in $(sed -n '/^\[profile.dev.package\]/,/^$/s/^\(.*\)\.opt-level.*/\1/p' Cargo.toml); do
    profile+=(--config "profile.dev.package.$crate.opt-level=0")
done
tests=(--lib)
for program in "${programs[@]}"; do
    tests+=(--test "$program")
done
cargo-zigbuild test --locked --target "$triple" "${profile[@]}" --no-fail-fast "${tests[@]}" -- \
    "${skipped[@]}" </dev/null
cargo-zigbuild build --locked --target "$triple" "${profile[@]}" --package otlpprof </dev/null
run_host "$CARGO_TARGET_DIR/$triple/debug"
