#!/usr/bin/env bash
# Counts the stacks that do not reach their root in applications from Maven Central, beside async-profiler:
# scripts/bench-applications.sh, or scripts/bench-peers.sh applications
#
# Each application is driven by a program in benches/applications, whose first lines list its requirements:
# libraries, JVM options, the oldest and the newest JDK. A cell is one application on one JDK under one
# profiler, and is complete with SAMPLES (20000) stacks. Each run is recorded in the ledger, so that a later
# invocation resumes after the last complete cell. A stack is broken by the definition of
# `otlpprof check-stacks --known-roots`, for both profilers. The counts do not depend on other
# load of the machine.
#
# APPLICATIONS and JDKS (absolute homes) select cells, separated by colons. SECONDS_EACH (10) is the duration
# of a run. The agent and the command are built with PROFILE (release). The ledger is
# target/applications/ledger.tsv; another build of the agent starts a new ledger.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly MOST_RUNS=30
samples_wanted=${SAMPLES:-20000}
seconds=${SECONDS_EACH:-10}
profile=${PROFILE:-release}
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
export OTLPPROF_BUDGET=off OTLPPROF_LIMIT=off

scripts/install-toolchain.sh rust cc jdk maven
scripts/install-jdks.sh >&2
cargo build --quiet --locked --profile "$profile" </dev/null
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
agent=$target/${profile/#dev/debug}/libotlpprof.so
command=$target/${profile/#dev/debug}/otlpprof
peer=$(scripts/fetch-async-profiler.sh)
work=$target/applications
mkdir -p "$work"

# Runs with another build of the agent must not be mixed with these.
ledger=$work/ledger.tsv
identity=$(sha256sum "$agent" | cut -c 1-16)
if [ "$(head -n1 "$ledger" 2>/dev/null)" != "# agent $identity" ]; then
    echo "# agent $identity" >"$ledger"
fi

if [ -n "${JDKS:-}" ]; then
    IFS=: read -ra jdks <<<"$JDKS"
else
    jdks=()
    for version in 17 25; do
        # Prefer a JDK with a compiler, if there is one.
        for home in "$(scripts/cache-folder.sh)/jdks/$version"-*; do
            chosen=$home
            [ ! -x "$home/bin/javac" ] || break
        done
        jdks+=("$chosen")
    done
fi
if [ -n "${APPLICATIONS:-}" ]; then
    IFS=: read -ra applications <<<"$APPLICATIONS"
else
    applications=()
    for source in benches/applications/*.java; do
        applications+=("$(basename "$source" .java)")
    done
fi

# Prints the values of a keyword in the head of a driver program, one per line: head_of NAME WORD
head_of() {
    sed -n "s|^// $2: ||p" "benches/applications/$1.java"
}

# Fetches an application's libraries and compiles its driver program. Prints its class path, or the reason of
# a failure.
prepare() {
    local name=$1 libraries='' artifacts
    readarray -t artifacts < <(head_of "$name" Maven)
    if [ ${#artifacts[@]} -gt 0 ]; then
        libraries=$(scripts/fetch-maven.sh --with-dependencies "${artifacts[@]}") || return
    fi
    mkdir -p "$work/$name"
    javac --release 17 -nowarn -Xlint:none -d "$work/$name" -cp "$libraries" \
        "benches/applications/$name.java" >&2 || return
    echo "$work/$name:$libraries"
}

# Prints the stacks and the broken stacks of a cell so far, and its number of runs: sum JDK NAME PROFILER
sum() {
    awk -F '\t' -v jdk="$1" -v name="$2" -v profiler="$3" \
        '$1 == jdk && $2 == name && $3 == profiler { all += $4; broken += $5; runs++ }
         END { print all + 0, broken + 0, runs + 0 }' "$ledger"
}

# Performs one run of a cell and appends a line to the ledger.
run() {
    local home=$1 name=$2 profiler=$3 classes=$4 jdk options option file said
    jdk=$(basename "$home")
    file=$work/$name-$jdk-$profiler.otlp
    rm -f "$file"
    case $profiler in
    otlpprof) option="-agentpath:$agent=cpu=1ms,interval=10s,loglevel=error,native_frames=name,file=$file" ;;
    *) option="-agentpath:$peer=start,event=cpu,interval=1ms,cstack=vm,jstackdepth=2048,otlp,file=$file" ;;
    esac
    readarray -t options < <(head_of "$name" Options | tr ' ' '\n')
    # The JDK ignores options that it does not know.
    (cd "$work" && timeout $((seconds * 6 + 120)) "$home/bin/java" "$option" \
        -XX:+IgnoreUnrecognizedVMOptions "${options[@]}" -cp "$classes" "$name" "$seconds") \
        >"$work/$name-$jdk-$profiler.log" 2>&1 || {
        echo "bench-applications: $name on $jdk under $profiler failed: $work/$name-$jdk-$profiler.log" >&2
        return 1
    }
    # check-stacks exits with 1 if a stack is broken.
    said=$("$command" check-stacks --known-roots --walker vm "$file" || true)
    said=$(sed -n 's/^\([0-9]*\) samples: .*, \([0-9]*\) do not$/\1\t\2/p' <<<"$said")
    [ -n "$said" ] || {
        echo "bench-applications: $file cannot be read" >&2
        return 1
    }
    printf '%s\t%s\t%s\t%s\n' "$jdk" "$name" "$profiler" "$said" >>"$ledger"
}

version_of() {
    "$1/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'
}

for name in "${applications[@]}"; do
    classes=$(prepare "$name") || {
        echo "bench-applications: $name is skipped: its libraries or its program are not available" >&2
        continue
    }
    oldest=$(head_of "$name" Oldest) newest=$(head_of "$name" Newest)
    for home in "${jdks[@]}"; do
        version=$(version_of "$home")
        [ "$version" -ge "${oldest:-0}" ] && [ "$version" -le "${newest:-99}" ] || continue
        for profiler in otlpprof async-profiler; do
            while read -r all _ runs < <(sum "$(basename "$home")" "$name" "$profiler") &&
                [ "$all" -lt "$samples_wanted" ] && [ "$runs" -lt "$MOST_RUNS" ]; do
                run "$home" "$name" "$profiler" "$classes" || break
            done
        done
    done
done

# Prints the number of stacks and the per cent of broken ones.
share() {
    awk -v all="$1" -v broken="$2" \
        'BEGIN { printf all ? "%d | %.4f %%" : " | ", all, 100 * broken / (all ? all : 1) }'
}

echo "| Application | JDK | otlpprof: stacks | broken | async-profiler: stacks | broken |"
echo "|---|---|---:|---:|---:|---:|"
all_ours=0 broken_ours=0 all_theirs=0 broken_theirs=0
for name in "${applications[@]}"; do
    for home in "${jdks[@]}"; do
        jdk=$(basename "$home")
        read -r ours broken _ < <(sum "$jdk" "$name" otlpprof)
        read -r theirs their_broken _ < <(sum "$jdk" "$name" async-profiler)
        [ "$ours" -gt 0 ] || [ "$theirs" -gt 0 ] || continue
        echo "| $name | $jdk | $(share "$ours" "$broken") | $(share "$theirs" "$their_broken") |"
        all_ours=$((all_ours + ours)) broken_ours=$((broken_ours + broken))
        all_theirs=$((all_theirs + theirs)) broken_theirs=$((broken_theirs + their_broken))
    done
done
echo "| all | | $(share "$all_ours" "$broken_ours") | $(share "$all_theirs" "$broken_theirs") |"
