#!/usr/bin/env bash
# Runs everything that scripts/test.sh leaves out, and the tests of scripts/test.sh in all combinations:
# scripts/test.sh --long [NAME...]
#
# The units are the test programs, those of a folder file by file (`agent::contexts`), with the tests that are
# ignored as "long: …" and with OTLPPROF_TEST_EVERYTHING: each pair of JDK, walker, clock and engine. Then
# come the steps listed below. NAME is a unit or a step; the default is all, which takes hours.
#
# target/long/ledger has a line for each unit: result, seconds, name, and a digest of what ran. A later call
# skips what has passed in its current build, and repeats the rest. The output of each unit is beside the
# ledger. Exits with 0 if all have passed, and then prints the line for docs/benchmarks/long.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:$(scripts/cache-folder.sh)/bin"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
folder=$target/long
ledger=$folder/ledger
mkdir -p "$folder"
touch "$ledger"

# Each step, and the command that it runs.
declare -A steps=(
    [fuzz-lints]="cargo clippy --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz
        -- -D warnings"
    [fuzz]="scripts/fuzz.sh"
    # Compiled fast: this test waits for sockets.
    [without-tls]="cargo test --locked --no-default-features --config profile.dev.opt-level=0
        --test export_upload"
    [aarch64]="scripts/test-aarch64.sh"
    [aarch64-jvms]="env -u OTLPPROF_TEST_EVERYTHING scripts/test-aarch64-jvms.sh --all"
    [aarch64-release]="env CARGO_TARGET_DIR=target/aarch64-release scripts/build-release.sh aarch64"
    [musl]="scripts/test-musl.sh"
    [musl-trixie]="scripts/test-musl.sh trixie"
    [offsets]="scripts/check-offsets.sh"
    # The compiler of each full JDK. CI requires JDKs of every version.
    [javac]="jdks=\$(scripts/install-debian-jdks.sh --full 11 17 21 25 26 27) &&
        env -u CI OTLPPROF_TEST_JDKS=\$jdks cargo test --locked --test agent javac::"
    # The agent without what it knows of 26 and later.
    [unseen]="jdks=\$(scripts/install-debian-jdks.sh 17 21 25 26 27 28) &&
        env -u CI OTLPPROF_TEST_JDKS=\$jdks scripts/without-rules-of-26.sh test --locked --test agent
        --test jvm_layout --
        --include-ignored without_rules_of_26 layouts_build_and_check deoptimisation_handlers
        count_of_a_forwarding damaged_descriptions"
    [packages]="scripts/package.sh && scripts/test-packages.sh"
    [reproducible]="scripts/test-reproducible.sh x86_64 x86_64-musl aarch64 aarch64-musl"
    [soak]="env OTLPPROF_TEST_EVERYTHING=1 PROFILE=release scripts/soak.sh --short"
)

scripts/install-toolchain.sh rust cc jdk python go openssl maven allocators llvm elfutils nextest zig
scripts/install-jdks.sh --debian
scripts/collector.sh >/dev/null
scripts/python-oracle.sh </dev/null
scripts/debug-objects.sh >/dev/null
export CI=${CI:-true} OTLPPROF_TEST_EVERYTHING=1
scripts/test-units.sh >"$folder/units"
{
    cat "$folder/units"
    for step in "${!steps[@]}"; do
        echo "$step step $(git rev-parse --short=16 HEAD:)"
    done | sort
} >"$folder/all"
for name in "$@"; do
    grep -q "^$name " "$folder/all" || {
        echo "test-long: no unit or step: $name" >&2
        exit 2
    }
done

red=0 count=0
while read -r name filter digest; do
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    count=$((count + 1))
    ! grep -q "^passed .* $name $digest\$" "$ledger" || continue
    start=$SECONDS result=passed
    if [ "$filter" = step ]; then
        command=(bash -c "${steps[$name]//$'\n'/ }")
    else
        command=(cargo nextest run --locked --profile long --run-ignored all -E "$filter")
    fi
    "${command[@]}" </dev/null >"$folder/$name.output" 2>&1 || result=failed
    echo "$result $((SECONDS - start)) $name $digest" | tee -a "$ledger"
    [ "$result" = passed ] || red=$((red + 1))
done <"$folder/all"
echo "test-long: $red of $count failed; ledger and outputs are in $folder"
[ "$red" = 0 ] || exit 1
echo "$(date -u +%Y-%m-%d) $(git rev-parse --short HEAD) ${*:-all}: $count passed"
