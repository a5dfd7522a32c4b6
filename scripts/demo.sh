#!/usr/bin/env bash
# Demonstrates the profiler on this machine: scripts/demo.sh [SECONDS]
#
# Installs missing tools, builds the release, and runs the sample program (several threads; Java code that
# calls into libddproftest and libc) twice. First by `otlpprof run`, which prints a report and writes a page.
# Then under the agent with remotesym, with `otlpprof collect` as the collector. Prints the top frames of the
# received profiles: Java frames by name, libddproftest's frames as <build-id>.<remote>(0xADDRESS), which a
# backend with the library's symbols would resolve. Leaves no process behind; page and profiles stay in
# target/demo.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$target/demo

fail() {
    echo "demo: $*" >&2
    exit 1
}

heading() {
    printf '\n== %s\n\n' "$*"
}

# Prints a path relative to this folder if it is inside.
short() {
    realpath -m --relative-base=. "$1"
}

# Prints a command in the form in which a user would type it.
show() {
    echo "\$ $*"
}

[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "'$seconds' is not a number of seconds"

heading "Building the agent and the command (minutes the first time)"
build=$(scripts/build-release.sh)
testkit=$(scripts/build-testkit.sh)
agent=$build/libotlpprof.so
echo "$(short "$agent") ($(du -h --apparent-size "$agent" | cut -f1))"

# Prints a java that can run the compiled classes.
find_java() {
    local java
    for java in "${JAVA_HOME:-/nonexistent}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        if [ -x "$java" ]; then
            echo "$java"
            return
        fi
    done
    fail "no java found"
}
java=$(find_java)

rm -rf "$out"
mkdir -p "$out/profiles"
page=$out/demo.html

heading "Running the sample program for $seconds seconds by one command"
program=("-Dddproftest=$testkit/libddproftest.so" -cp "$testkit/testprograms" programs.Demo "$seconds")
show "otlpprof run -o $(short "$page") java programs.Demo $seconds"
"$build/otlpprof" run -o "$page" --top 10 "$java" "${program[@]}" </dev/null >"$out/run.log" \
    2>"$out/run.txt" ||
    fail "the sample program failed: $(cat "$out/run.log" "$out/run.txt")"
sed "s|$page|$(short "$page")|" "$out/run.txt"
grep -q '^your code ' "$out/run.txt" || fail "the report does not say how much of the time is the program's"
grep -qE ' programs\.[A-Z]' "$out/run.txt" || fail "no method of the sample program is in the report"
head -c 15 "$page" | grep -qx '<!DOCTYPE html>' || fail "$page is no page"
echo "$(short "$page") is a flame graph ($(du -h --apparent-size "$page" | cut -f1)) that a browser opens \
without network."

heading "Starting a collector of our own"
show "otlpprof collect --listen 127.0.0.1:0 --output $(short "$out/profiles") &"
"$build/otlpprof" collect --listen 127.0.0.1:0 --output "$out/profiles" >"$out/collect.log" 2>&1 </dev/null &
collector=$!
trap 'kill "$collector" 2>/dev/null && wait "$collector" 2>/dev/null || true' EXIT

endpoint=
for _ in $(seq 100); do
    endpoint=$(sed -n 's/^listening on \(http:.*\)/\1/p' "$out/collect.log")
    [ -z "$endpoint" ] || break
    kill -0 "$collector" 2>/dev/null || break
    sleep 0.1
done
[ -n "$endpoint" ] || fail "the collector did not start: $(cat "$out/collect.log")"
echo "listening on $endpoint"

heading "Running the sample program for $seconds seconds under the agent"
options="remotesym=true,interval=2s,endpoint=$endpoint,service=otlpprof-demo"
show "java -agentpath:$(short "$agent")=$options programs.Demo $seconds"
"$java" "-agentpath:$agent=$options" "${program[@]}" </dev/null >"$out/java.log" 2>&1 ||
    fail "the sample program failed: $(cat "$out/java.log")"

profiles=("$out"/profiles/*)
[ -e "${profiles[0]}" ] || fail "nothing arrived: $(cat "$out/java.log" "$out/collect.log")"
echo "${#profiles[@]} messages arrived"

heading "What arrived"
show "otlpprof report $(short "$out/profiles")/*"
"$build/otlpprof" report "${profiles[@]}" >"$out/top.txt"
cat "$out/top.txt"

# Verify each claim before printing it.
"$build/otlpprof" validate "${profiles[@]}" >"$out/validate.txt" ||
    fail "the profiles are not valid: $(cat "$out/validate.txt")"
id=$(readelf -n "$testkit/libddproftest.so" | sed -n 's/.*Build ID: //p')
grep -qF "$id.<remote>(0x" "$out/top.txt" || fail "no frame of libddproftest ($id) is among the top ones"
grep -qE ' programs\.[A-Z]' "$out/top.txt" || fail "no method of the sample program is among the top ones"

echo "The hottest stack that ends in libddproftest, leaf first:"
echo
"$build/otlpprof" print --stacks 1000 "${profiles[@]}" | awk -v id="$id." '
    /^ +[0-9.,]+ [^ ]+ +[0-9.]+ %$/ { if (shown) exit; sum = $0; next }
    sum != "" { shown = index($0, id); if (shown) print sum; sum = "" }
    shown'

# Resolves one remote frame in the way a backend would.
address=$(sed -n "s/.*$id\.<remote>(\(0x[0-9a-f]*\)).*/\1/p" "$out/top.txt" | head -n1)
symbol=$(addr2line -f -e "$testkit/libddproftest.so" "$address" | head -n1)

cat <<END

Java frames have names. Frames of native libraries are left as build-id and address, \
for a backend that has the
symbols: $id is libddproftest.so, and its $address is $symbol().

== Next

Your own program, with a report and a page when it has ended:

    $build/otlpprof run java -jar app.jar

with profiles in a file (otlpprof report shows them):

    java -agentpath:$agent=file=/tmp/%p.otlp -jar app.jar

or sent to your OpenTelemetry collector, every ten seconds:

    java -agentpath:$agent=endpoint=http://HOST:4318,service=NAME -jar app.jar

docs/options.md has all options. The profiles of this demo are in $(short "$out/profiles"), its page is \
$(short "$page").
END
