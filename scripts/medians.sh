# Times contenders of a benchmark and prints their medians; to be sourced. The measurements of a contender are
# the lines of a file of its name in the folder $work, which is removed at the end. $target is the folder of
# builds. $turns is the number of rounds: TURNS (5). The measured command is OTLPPROF_COMMAND.

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
turns=${TURNS:-5}

# Builds the command in release mode, unless OTLPPROF_COMMAND names one.
build_command() {
    [ -z "${OTLPPROF_COMMAND:-}" ] || return 0
    cargo build --quiet --release --locked --bin otlpprof </dev/null
    OTLPPROF_COMMAND=$target/release/otlpprof
}

# Runs a command and records its seconds and kilobytes: measure NAME COMMAND…
#
# This shell measures the wall-clock time, because time(1) prints hundredths of seconds. The time includes
# the start of time(1), about a millisecond.
measure() {
    local start=$EPOCHREALTIME end used
    /usr/bin/time -f '%U %M' -o "$work/used" "${@:2}"
    end=$EPOCHREALTIME
    read -r used <"$work/used"
    awk -v start="$start" -v end="$end" -v used="$used" 'BEGIN { printf "%.6f %s\n", end - start, used }' \
        >>"$work/$1"
}

# Prints the medians of a contender, if it has run: print_medians NAME
print_medians() {
    local column medians=() middle
    [ -f "$work/$1" ] || return 0
    middle=$((($(wc -l <"$work/$1") + 1) / 2))
    for column in 1 2 3; do
        medians+=("$(cut -d' ' -f$column "$work/$1" | sort -n | sed -n "${middle}p")")
    done
    printf '%-36s %8.3f s wall  %8.3f s user  %6d MB  (%d runs)\n' "$1" "${medians[0]}" "${medians[1]}" \
        $((medians[2] / 1024)) "$(wc -l <"$work/$1")"
}
