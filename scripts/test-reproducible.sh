#!/usr/bin/env bash
# Makes all packages twice, and compares them byte by byte: scripts/test-reproducible.sh [PLATFORM]...
#
# The last commit is checked out into two folders, and built there with other caches, at another time, in
# another time zone and language, and with other permissions for new files. PLATFORM is what
# scripts/build-release.sh takes, by default this machine's architecture: each takes about ten minutes of a
# processor. Prints the sums. Part of the long tests, and of no other.
set -euo pipefail
# A failure inside of $() ends the script too.
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

fail() {
    echo "test-reproducible: $*" >&2
    exit 1
}

platforms=("$@")
[ ${#platforms[@]} -gt 0 ] || platforms=("$(uname -m)")
# Nothing is passed on that names this checkout.
unset CARGO_TARGET_DIR SOURCE_DATE_EPOCH
scripts/install-toolchain.sh rust cc jdk maven zig packaging
cache=$(scripts/cache-folder.sh)
commit=$(git rev-parse --short HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"; git worktree prune' EXIT

# Makes the packages in a checkout of its own, and prints their folder: make_packages FOLDER
make_packages() {
    local checkout=$1 platform releases=()
    git worktree add --quiet --detach "$checkout" "$commit"
    # The tools, without what they have built in another folder. Links take no room.
    mkdir "$checkout/.cache"
    cp -al "$cache"/{zig,packaging,maven} "$checkout/.cache"
    rm -rf "$checkout"/.cache/zig/{cache,release-cache,wrappers}
    for platform in "${platforms[@]}"; do
        releases+=("$(cd "$checkout" && scripts/build-release.sh "$platform")")
    done
    "$checkout/scripts/package.sh" "${releases[@]}"
}

first=$(make_packages "$work/first")
second=$(umask 077 && export TZ=Asia/Kathmandu LANG=C.UTF-8 && make_packages "$work/in/a/longer/folder")
diff -r "$first" "$second" || fail "the packages of two builds differ"
cat "$second/SHA256SUMS"
echo "test-reproducible: both builds of $commit are the same"
