#!/usr/bin/env bash
# Runs a small program with an installed agent, and reads its profile with an installed command:
# scripts/test-agent-option.sh COMMAND OPTION
#
# COMMAND is an otlpprof. OPTION is a JVM's option that loads the agent, such as -agentpath:FILE, or `run`:
# then COMMAND finds the agent itself.
set -euo pipefail

fail() {
    echo "test-agent-option: $*" >&2
    exit 1
}

[ $# = 2 ] || fail "usage: scripts/test-agent-option.sh COMMAND OPTION"
command=$(realpath "$1") option=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/Busy.java" <<'END'
public class Busy {
    public static void main(String[] arguments) {
        double sum = 0;
        for (long end = System.nanoTime() + 1_000_000_000L; System.nanoTime() < end; ) {
            for (int i = 1; i < 10_000; i++) sum += Math.sqrt(i);
        }
        System.out.println(sum > 0);
    }
}
END
cd "$work"
if [ "$option" = run ]; then
    "$command" run --keep profile.otlp cpu=1ms -- java Busy.java >log 2>&1 || fail "$(cat log)"
else
    java "$option=file=$work/profile.otlp,cpu=1ms" Busy.java >log 2>&1 || fail "$(cat log)"
fi
"$command" validate profile.otlp >validated 2>&1 || fail "$(cat validated log)"
"$command" print profile.otlp >printed 2>&1 || fail "$(cat printed log)"
grep -q 'Busy\.main' printed || fail "no sample of the program: $(cat printed log)"
echo "test-agent-option: $command, $option: profiled"
