#!/usr/bin/env bash
# Runs start/stop cycles, and sampling every 100 µs in many kinds of JVMs. Nothing may crash or remain, and
# stacks must reach their roots. Then runs all engines at once for ten minutes; their counts must add up.
# Prints one line per run.
#
#     scripts/soak.sh            1,000 cycles on each JDK; a minute of each program, and 15 seconds of it on
#                                each kind of JVM; ten minutes of all engines on the newest JDK; about two
#                                hours
#     scripts/soak.sh --short    1,000 cycles on one JDK; seconds of sampling on one of each version
#
# PROFILE=release takes the release (scripts/build-release.sh). OTLPPROF_TEST_JDKS (a list like PATH) names
# the JDKs; the default is the JDKs in the cache, which scripts/install-jdks.sh collects.
set -euo pipefail
cd "$(dirname "$0")/.."

short=
case ${1:-} in
"") ;;
--short) short=yes ;;
*)
    echo "usage: scripts/soak.sh [--short]" >&2
    exit 2
    ;;
esac

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
# Without budget and limit, which would reduce the number of samples.
export OTLPPROF_BUDGET=off OTLPPROF_LIMIT=off
profile=${PROFILE:-dev}
if [[ $profile == release ]]; then
    target=$(scripts/build-release.sh)
else
    cargo build --quiet --locked --profile "$profile" </dev/null
    target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/${profile/#dev/debug}
fi

testkit=$(scripts/build-testkit.sh)

runs=$(mktemp -d)
failures=0

# Removes the files of all runs, unless a run has failed.
clean_up() {
    if [[ $failures -eq 0 ]]; then
        rm -rf "$runs"
    else
        echo "soak: the files of the failed runs are in $runs" >&2
    fi
}
trap clean_up EXIT

failed() {
    failures=$((failures + 1))
    echo "  FAILED: $*"
}

if [[ -n ${OTLPPROF_TEST_JDKS:-} ]]; then
    IFS=: read -ra jdks <<<"$OTLPPROF_TEST_JDKS"
else
    jdks=("$(scripts/cache-folder.sh)"/jdks/*)
    if [[ $short && -z ${OTLPPROF_TEST_EVERYTHING:-} ]]; then
        # Takes the last JDK of each version. A JDK's name begins with its version.
        declare -A last
        for jdk in "${jdks[@]}"; do
            name=$(basename "$jdk")
            last[${name%%-*}]=$jdk
        done
        readarray -t jdks < <(printf '%s\n' "${last[@]}" | sort)
    fi
fi
[[ -x ${jdks[0]}/bin/java ]] || {
    echo "soak: no JDK found; run scripts/install-jdks.sh" >&2
    exit 2
}

# Runs a program in a directory of its own: java JDK SECONDS NAME FLAGS PROGRAM [ARGUMENT...]. The timeout is
# longer than the program should take. A JVM that hangs is aborted, which dumps its stacks.
java() {
    local jdk=$1 seconds=$2 name=$3 flags=$4
    shift 4
    run=$runs/$(basename "$jdk")/$name
    mkdir -p "$run"
    local program=$1
    shift
    local home
    home=$(realpath "$jdk")
    # shellcheck disable=SC2086 # flags are words
    (cd "$run" && timeout --signal=ABRT $((seconds * 4 + 120)) "$home/bin/java" $flags \
        -Dddproftest="$testkit/libddproftest.so" -cp "$testkit/testprograms" "programs.$program" "$@" \
        >output.txt 2>&1) || {
        failed "$jdk $flags $program: status $?"
        tail -n 20 "$run/output.txt"
        find "$run" -name 'hs_err*' -exec head -n 40 {} \;
        return 1
    }
}

# Runs a program under the agent and prints how many samples reach their root: sample JDK SECONDS NAME FLAGS
# PROGRAM. PERCENT of the samples must reach it, and there must be at least LEAST. A sample is a recorded
# stack, regardless of its weight in periods; timestamps tell samples apart. Only stacks that end in a known
# entry count, the criterion that is also used for other profilers. With remote frames (REMOTE=true) native
# roots have no names to recognise.
sample() {
    local jdk=$1 seconds=$2 name=$3 flags=$4 program=$5
    local remote=${REMOTE:-false} known_roots=
    [[ $remote == true ]] || known_roots=--known-roots
    local options="file=profiles.otlp,remotesym=$remote,cpu=100us,interval=5s,timestamps=true"
    java "$jdk" "$seconds" "$name" "-agentpath:$target/libotlpprof.so=$options $flags" \
        "$program" "$seconds" || return 0
    local result
    result=$("$target/otlpprof" check-stacks $known_roots --distinct-times --at-least "$PERCENT" \
        "$run/profiles.otlp") ||
        failed "$jdk $name: less than $PERCENT % of the stacks reach their root:"$'\n'"$result"
    "$target/otlpprof" validate --show 1 "$run/profiles.otlp" >"$run/validate.txt" 2>&1 ||
        failed "$jdk $name: the profiles are not valid:"$'\n'"$(cat "$run/validate.txt")"
    printf '%-28s %-10s %-28s %s\n' "$(basename "$jdk")" "$name" \
        "$program${flags:+ $flags}" "${result%%$'\n'*}"
    [[ ${result%% *} -ge $LEAST ]] || failed "$jdk $name: less than $LEAST samples"
    # The agent's own counts. Dropped samples do not fail this test.
    grep -oE 'samples_(recorded|dropped)=[0-9]+' "$run/output.txt" | paste -sd ' ' || true
}

# Runs a thousand sessions in one process: start_stop JDK OPTIONS
start_stop() {
    local jdk=$1 name=cycles-$2
    local options="start,cpu=100us,cpu.clock=$2,file=profiles-%p.otlp,strict=true,loglevel=error"
    if java "$jdk" 120 "$name" "-Xms64m -Xmx64m -XX:+AlwaysPreTouch" \
        StartStop "$target/libotlpprof.so" "$options" 1000; then
        echo "$(basename "$jdk") start/stop by $2:"
        grep '^after' "$run/output.txt" | sed 's/^/  /'
    fi
}

has_collector() {
    "$1/bin/java" -XX:+UnlockExperimentalVMOptions "-XX:+Use$2" -version >/dev/null 2>&1
}

echo "== start and stop, 1,000 times in one process"
if [[ $short ]]; then
    start_stop "${jdks[-1]}" perf
else
    for jdk in "${jdks[@]}"; do
        for clock in perf timer itimer; do
            start_stop "$jdk" $clock
        done
    done
fi

echo "== 100 µs sampling"
PERCENT=99.5 LEAST=1000 demo_least=100000 seconds=60 kind_seconds=15
demo_seconds=$seconds kind_demo_seconds=$kind_seconds
if [[ $short ]]; then
    demo_least=1000 seconds=1 kind_seconds=1
    demo_seconds=2 kind_demo_seconds=2
fi

# Runs one kind of JVM for a short time: kind JDK NAME FLAGS [PROGRAM]
kind() {
    local seconds=$kind_demo_seconds
    [[ -z ${4:-} ]] || seconds=$kind_seconds
    sample "$1" "$seconds" "$2" "$3" "${4:-Demo}"
}

for jdk in "${jdks[@]}"; do
    LEAST=$demo_least sample "$jdk" "$demo_seconds" demo "" Demo
    sample "$jdk" "$seconds" storm "" HiddenClassStorm
    sample "$jdk" "$seconds" short "" ShortThreads
    if "$jdk/bin/java" -version 2>&1 | grep -E 'version "(2[1-9]|[3-9][0-9])' >/dev/null; then
        sample "$jdk" "$seconds" virtual "" VirtualThreads
    fi
    # The short form has only two minutes.
    [[ $short && $jdk != "${jdks[-1]}" ]] && continue
    REMOTE=true kind "$jdk" remote ""
    kind "$jdk" xint -Xint
    kind "$jdk" xcomp -Xcomp
    kind "$jdk" c1 -XX:TieredStopAtLevel=1
    [[ $short ]] && continue
    kind "$jdk" checkjni -Xcheck:jni
    for collector in SerialGC ParallelGC G1GC ZGC ShenandoahGC; do
        has_collector "$jdk" $collector || continue
        flags="-XX:+UnlockExperimentalVMOptions -XX:+Use$collector"
        kind "$jdk" $collector "$flags"
        kind "$jdk" storm-$collector "$flags" HiddenClassStorm
    done
done

if [[ ! $short ]]; then
    echo "== all engines at once for ten minutes, by the release build"
    OTLPPROF_TEST_ENGINES_S=600 cargo test --quiet --locked --release --test agent \
        all_engines_run_together -- --nocapture </dev/null || failed "all engines at once"
fi

[[ $failures -eq 0 ]] || {
    echo "soak: $failures failed" >&2
    exit 1
}
echo "soak: all passed"
