#!/usr/bin/env bash
# Runs the tests three times beside four busy-looping processes: scripts/test-under-load.sh [NAME...]
#
# Tests must pass on a busy machine too. NAME is a unit of scripts/test-units.sh, such as `agent::contexts`;
# the default is all. No test has a second try. The ledger, target/under-load/ledger, has a line for each run:
# result, seconds, unit, and the digest of the programs that ran. A later invocation resumes from it: it skips
# units that have passed three times in their current build, and repeats failed ones. TURNS and SPINNERS
# change the numbers. The output of a failed run is beside the ledger. Exits with 0 if all have passed.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:$(scripts/cache-folder.sh)/bin"
turns=${TURNS:-3} spinners=${SPINNERS:-4}
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")/under-load
ledger=$folder/ledger
mkdir -p "$folder"
touch "$ledger"

scripts/test-units.sh >"$folder/units"
for name in "$@"; do
    grep -q "^$name " "$folder/units" || {
        echo "test-under-load: no unit: $name" >&2
        exit 2
    }
done

pids=()
trap '[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true' EXIT
for ((n = 0; n < spinners; n++)); do
    (while :; do :; done) &
    pids+=($!)
done

# Prints how often the ledger has this result for a unit: count RESULT NAME DIGEST
count() {
    grep -c "^$1 .* $2 $3\$" "$ledger" || true
}

red=0
while read -r name filter digest; do
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    for ((turn = $(count passed "$name" "$digest"); turn < turns; turn++)); do
        start=$SECONDS result=passed
        cargo nextest run --locked --profile under-load -E "$filter" \
            </dev/null >"$folder/$name.output" 2>&1 || result=failed
        echo "$result $((SECONDS - start)) $name $digest" | tee -a "$ledger"
        if [ "$result" = failed ]; then
            mv "$folder/$name.output" "$folder/$name.failed-$(date +%H%M%S)"
            red=$((red + 1))
        else
            rm -f "$folder/$name.output"
        fi
    done
done <"$folder/units"
echo "test-under-load: $red runs failed; the ledger is $ledger"
[ "$red" = 0 ]
