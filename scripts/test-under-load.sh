#!/usr/bin/env bash
# Runs each file of tests three times beside four busy-looping processes: scripts/test-under-load.sh [NAME...]
#
# Tests must pass on a busy machine too. NAME is a file in tests/ without its extension, or `lib` for the unit
# tests; the default is all. The ledger, target/under-load/ledger, has a line for each run: result, seconds,
# file, and the digest of the program that ran. A later invocation resumes from it: it skips files that have
# passed three times in their current build, and repeats failed ones. TURNS and SPINNERS change the numbers.
# The output of a failed run is beside the ledger. Exits with 0 if all have passed.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
turns=${TURNS:-3} spinners=${SPINNERS:-4}
# Far longer than any file of tests takes on a quiet machine.
readonly LIMIT_S=3600
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")/under-load
ledger=$folder/ledger
mkdir -p "$folder"
touch "$ledger"

# Lists name and program of each file of tests, as cargo has built them.
cargo test --locked --no-run --message-format=json </dev/null |
    python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
        target = message["target"]
        is_library = "lib" in target["kind"] or "cdylib" in target["kind"]
        print("lib" if is_library else target["name"], message["executable"])
' >"$folder/programs"
[ -s "$folder/programs" ] || {
    echo "test-under-load: cargo has built no tests" >&2
    exit 2
}
for name in "$@"; do
    grep -q "^$name " "$folder/programs" || {
        echo "test-under-load: no file of tests: $name" >&2
        exit 2
    }
done

pids=()
trap '[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true' EXIT
for ((n = 0; n < spinners; n++)); do
    (while :; do :; done) &
    pids+=($!)
done

# Prints how often the ledger has this result for a program: count RESULT NAME DIGEST
count() {
    grep -c "^$1 .* $2 $3\$" "$ledger" || true
}

red=0
while read -r name program; do
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    digest=$(sha256sum "$program" | cut -c 1-16)
    for ((turn = $(count passed "$name" "$digest"); turn < turns; turn++)); do
        start=$SECONDS
        which=(--test "$name")
        [ "$name" != lib ] || which=(--lib)
        result=passed
        timeout "$LIMIT_S" cargo test --locked "${which[@]}" \
            </dev/null >"$folder/$name.output" 2>&1 || result=failed
        echo "$result $((SECONDS - start)) $name $digest" | tee -a "$ledger"
        if [ "$result" = failed ]; then
            mv "$folder/$name.output" "$folder/$name.failed-$(date +%H%M%S)"
            red=$((red + 1))
        else
            rm -f "$folder/$name.output"
        fi
    done
done <"$folder/programs"
echo "test-under-load: $red runs failed; the ledger is $ledger"
[ "$red" = 0 ]
