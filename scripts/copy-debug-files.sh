#!/usr/bin/env bash
# Copies the debug files of a release to DIR/.build-id/xx/yyyy.debug: scripts/copy-debug-files.sh RELEASE DIR
#
# RELEASE is a folder of scripts/build-release.sh, which may have debug files of earlier builds too.
set -euo pipefail

[ $# = 2 ] || { echo "copy-debug-files: usage: scripts/copy-debug-files.sh RELEASE DIR" >&2 && exit 1; }
for file in otlpprof libotlpprof.so; do
    id=$(readelf -n "$1/$file" | sed -n 's/.*Build ID: //p')
    debug=.build-id/${id:0:2}/${id:2}.debug
    if [ -z "$id" ] || [ ! -f "$1/$debug" ]; then
        echo "copy-debug-files: $1/$file has no debug file (scripts/split-symbols.sh)" >&2
        exit 1
    fi
    install -D -m 644 "$1/$debug" "$2/$debug"
done
