#!/bin/sh
# Prints the folder of everything that is fetched or built once: the collector, JDKs, Node, debug files,
# Python's packages, zig, recordings. All checkouts of a user share the folder. Its parts are keyed by
# version, are renamed into place when they are complete, and can be removed at any time.
#
# The folder is OTLPPROF_CACHE, else ${XDG_CACHE_HOME:-~/.cache}/otlpprof. This checkout's .cache becomes a
# link to the folder. A real folder of that name is used as it is.
set -eu
cd "$(dirname "$0")/.."

if [ -L .cache ] || [ ! -d .cache ]; then
    folder=${OTLPPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/otlpprof}
    mkdir -p "$folder"
    folder=$(realpath "$folder")
    if [ "$(readlink .cache || true)" != "$folder" ]; then
        # Renamed into place: another script may be doing the same.
        ln -sfn "$folder" ".cache.$$"
        mv -T ".cache.$$" .cache
    fi
fi
realpath .cache
