#!/usr/bin/env bash
# Installs and runs what scripts/package.sh has made: scripts/test-packages.sh [FOLDER]
#
# FOLDER is target/package by default. The artifacts for this machine are unpacked or installed into folders
# of their own, and profile a program. The contents of the others are checked. Needs root for the Debian
# packages and for the image; lintian checks the packages where there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/reproducible.sh

fail() {
    echo "test-packages: $*" >&2
    exit 1
}

folder=$(realpath "${1:-target/package}")
[ -f "$folder/SHA256SUMS" ] || fail "$folder has no SHA256SUMS (scripts/package.sh)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
machine=$(uname -m)

# Fails unless a list has each of these names: has LIST NAME...
has() {
    local name
    for name in "${@:2}"; do
        grep -qxF -e "$name" <<<"$1" || fail "no $name in: $1"
    done
}

(cd "$folder" && sha256sum --quiet --check SHA256SUMS)

# The archives. A release's own command reads its debug files, where it runs here.
for archive in "$folder"/otlpprof-"$VERSION"-linux-*.tar.gz; do
    name=${archive##*/} name=${name%.tar.gz}
    [ "$name" = "${name%-debug}" ] || continue
    has "$(tar -tzf "$archive")" "$name"/{bin/otlpprof,lib/libotlpprof.so,README.md,LICENSE,CHANGELOG.md} \
        "$name"/{otlpprof.cdx.json,licenses/crates.txt,docs/options.md} \
        "$name"/share/{man/man1/otlpprof-run.1,bash-completion/completions/otlpprof}
    tar -xzf "$archive" -C "$work"
    [ "otlpprof-$VERSION-$(scripts/elf-platform.sh "$work/$name/lib/libotlpprof.so")" = "$name" ] ||
        fail "$name has a library for another platform"
    # The bill and the licenses name the same crates; procedural macros are only in the licenses.
    python3 - "$work/$name" <<'END'
import json, re, sys
bill = json.load(open(sys.argv[1] + "/otlpprof.cdx.json"))
licenses = set(re.findall(r"(?m)^  (\S+) (\S+?),? ?\S*$", open(sys.argv[1] + "/licenses/crates.txt").read()))
crates = {(part["name"], part["version"]) for part in bill["components"] if part["name"] != "rust-std"}
assert len(crates) > 50 and crates <= licenses, crates - licenses
assert not {"syn", "proptest", "cc"} & {name for name, _ in crates}, crates
assert "path+file:" not in json.dumps(bill)
END
done
native=$work/otlpprof-$VERSION-linux-$machine
[ -d "$native" ] || fail "$folder has no archive for linux-$machine"
for debug in "$folder"/otlpprof-"$VERSION"-linux-*-debug.tar.gz; do
    name=${debug##*/} name=$work/${name%-debug.tar.gz}
    scripts/check-symbols.sh "$native/bin/otlpprof" "$debug" "$name/bin/otlpprof" "$name/lib/libotlpprof.so"
done
scripts/test-agent-option.sh "$native/bin/otlpprof" run
scripts/test-agent-option.sh "$native/bin/otlpprof" "-agentpath:$native/lib/libotlpprof.so"
scripts/test-agent-option.sh "$native/bin/otlpprof" "-javaagent:$folder/otlpprof-$VERSION.jar"

# The Debian packages: installed into a folder, with a database of its own.
for package in "$folder"/otlpprof_*.deb; do
    has "$(dpkg-deb -c "$package" | awk '{ print $6 }')" \
        ./usr/bin/otlpprof ./usr/lib/otlpprof/libotlpprof.so \
        ./usr/share/{man/man1/otlpprof{,-run}.1.gz,zsh/vendor-completions/_otlpprof} \
        ./usr/share/{bash-completion/completions/otlpprof,fish/vendor_completions.d/otlpprof.fish} \
        ./usr/share/doc/otlpprof/{copyright,changelog.gz,changelog.Debian.gz,README.md,licenses/crates.txt}
    ! dpkg-deb -c "$package" | grep -v ' root/root ' || fail "files of $package belong to another user"
    ! command -v lintian >/dev/null ||
        lintian --fail-on error "$package" "${package/otlpprof_/otlpprof-dbgsym_}"
done
root=$work/root
packages=("$folder"/otlpprof{,-dbgsym}_*_"$(dpkg --print-architecture)".deb)
mkdir -p "$root" "$work/dpkg"/{info,updates}
touch "$work/dpkg"/{status,available}
# This system's C library serves: the folder has none.
dpkg --log=/dev/null --instdir="$root" --admindir="$work/dpkg" --force-depends --install "${packages[@]}" \
    >"$work/said" 2>&1 || fail "$(cat "$work/said")"
# Compares with the packages' sums of files.
dpkg --instdir="$root" --admindir="$work/dpkg" --verify >"$work/said" 2>&1 && [ ! -s "$work/said" ] ||
    fail "dpkg --verify: $(cat "$work/said")"
scripts/test-agent-option.sh "$root/usr/bin/otlpprof" run
tar -C "$root/usr/lib/debug" -cf "$work/debug.tar" .build-id
scripts/check-symbols.sh "$root/usr/bin/otlpprof" "$work/debug.tar" "$root/usr/lib/otlpprof/libotlpprof.so"

scripts/test-image.sh "$folder/image"
echo "test-packages: all packages of $folder work"
