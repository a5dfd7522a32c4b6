#!/usr/bin/env bash
# Writes what shells and man(1) know of the command: scripts/package-shell-files.sh OUT RELEASE...
#
#   OUT/man/man1/otlpprof.1, otlpprof-run.1, ...            the manual's pages, one for each command
#   OUT/bash-completion/completions/otlpprof
#   OUT/zsh/vendor-completions/_otlpprof
#   OUT/fish/vendor_completions.d/otlpprof.fish
#
# OUT has the layout of /usr/share on Debian. The command itself writes the files, which are the same on all
# platforms: the first RELEASE, a folder of scripts/build-release.sh, whose command runs on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "package-shell-files: $*" >&2
    exit 1
}

[ $# -ge 2 ] || fail "usage: scripts/package-shell-files.sh OUT RELEASE..."
out=$(realpath -m "$1")
shift
command=
for release in "$@"; do
    if "$release/otlpprof" --version >/dev/null 2>&1; then
        command=$(realpath "$release/otlpprof")
        break
    fi
done
[ -n "$command" ] || fail "none of these commands runs on this machine: $*"

mkdir -p "$out"/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
"$command" man "$out/man/man1"
"$command" completions bash >"$out/bash-completion/completions/otlpprof"
"$command" completions zsh >"$out/zsh/vendor-completions/_otlpprof"
"$command" completions fish >"$out/fish/vendor_completions.d/otlpprof.fish"
