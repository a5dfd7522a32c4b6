#!/bin/sh
# Runs a command that fetches something, and retries twice if it fails: scripts/retry.sh COMMAND [ARGUMENT...]
#
# A registry may be out of reach for a moment. The pauses are 5 and 20 seconds.
set -u

for pause in 5 20; do
    "$@" && exit
    echo "retry: $1 failed; trying again in $pause seconds" >&2
    sleep "$pause"
done
exec "$@"
