#!/usr/bin/env bash
# Runs rustc with further flags, one a line of OTLPPROF_RUSTC_FLAGS. cargo calls this script as its wrapper of
# rustc (RUSTC_WRAPPER): scripts/rustc-with-flags.sh RUSTC ARGUMENT...
set -euo pipefail
mapfile -t flags <<<"$OTLPPROF_RUSTC_FLAGS"
exec "$@" "${flags[@]}"
