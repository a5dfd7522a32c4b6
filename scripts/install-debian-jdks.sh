#!/usr/bin/env bash
# Fetches JDKs of Debian unstable, and prints their homes, separated by colons, as OTLPPROF_TEST_JDKS takes
# them: scripts/install-debian-jdks.sh [--arm64] [--full] [--new] [RELEASE...]
#
#   RELEASE  a feature release; without any, 26 and 27. Debian unstable has 11, 17, 21, 25, 26, 27 and 28.
#   --arm64  JDKs for aarch64, which run under qemu-user on a machine of another architecture
#   --full   the whole JDK, with javac and with debug files in usr/lib/debug, in place of the headless runtime
#   --new    fetches releases that exist already. Unstable changes daily, and keeps no old versions.
#
# The packages are unpacked into debian-jdks/RELEASE of the cache, or into debian-jdks/arm64-RELEASE with
# --arm64, together with the C library that they need, and are not installed. The JDK's programs name that C
# library's loader as their interpreter and search for libraries beside it. So they run on a system with an
# older C library, without a root directory of their own. In place of the programs of a JDK to emulate there
# are scripts that start the emulator. `run` in that folder runs any other program with that C library. The
# versions are printed to stderr, and kept in the file `packages`. Needs a Debian system, whose mirror
# is used, and no root except for the packages of qemu-user and patchelf where they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian-suite.sh

CACHE=$(scripts/cache-folder.sh)/debian-jdks
readonly CACHE
# The libraries outside of the JDK that a headless JVM needs.
readonly LIBRARIES=(libc6 libgcc-s1 libstdc++6 zlib1g)
# The emulated processor: all that qemu has, with return addresses signed by an algorithm that it computes
# fast, and vectors of 256 bits.
readonly PROCESSOR=max,pauth-impdef=on,sve-max-vq=2

scratch=
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

fail() {
    echo "install-debian-jdks: $*" >&2
    exit 1
}

# Prints the last line of stdin, cut to 200 characters.
last_words() {
    tail -n1 | cut -c 1-200
}

# Runs apt-get on unstable's list only. Installs nothing.
unstable() {
    apt_apart "$machine,$architecture" apt-get "$@" 2>&1
}

# Reads unstable's list of packages, once.
read_list() {
    [ -z "$scratch" ] || return 0
    command -v apt-get >/dev/null || fail "this system has no apt-get to download Debian's JDKs with"
    local mirror said
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || fail "this system is no Debian, whose mirror would have Debian's JDKs"
    scratch=$(mktemp -d "$CACHE/.download.XXXXXX")
    choose_suites "$mirror unstable"
    said=$(unstable update -o APT::Update::Error-Mode=any) ||
        fail "unstable's packages cannot be listed: $(last_words <<<"$said")"
}

# Gives the programs of a home the loader and the libraries of its root.
patch_programs() {
    local home=$1 loader=$2 libraries=$3 program said
    for program in "$home"/bin/* "$home"/lib/jspawnhelper; do
        [ -f "$program" ] && [ ! -L "$program" ] || continue
        said=$(patchelf --set-interpreter "$loader" "$program" 2>&1 &&
            patchelf --force-rpath --set-rpath "$(patchelf --print-rpath "$program"):$libraries" \
                "$program" 2>&1) || fail "patchelf fails on $program: $(last_words <<<"$said")"
    done
}

# Puts a script that starts the emulator in the place of each program of a home. The program itself stays in
# its folder, from which it finds its home: PROGRAM.emulated.
emulate_programs() {
    local home=$1 run=$2 program
    for program in "$home"/bin/*; do
        [ -f "$program" ] && [ ! -L "$program" ] || continue
        mv "$program" "$program.emulated"
        printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$run" "$program.emulated" >"$program"
        chmod +x "$program"
    done
}

# The root of a release.
root_of() {
    if [ -n "$emulated" ]; then echo "$CACHE/$architecture-$1"; else echo "$CACHE/$1"; fi
}

# The home of a release in its root.
home_of() {
    echo "$(root_of "$1")/usr/lib/jvm/java-$1-openjdk-$architecture"
}

# Whether a release is there, complete if wanted, and runs.
has() {
    local packages
    packages=$(root_of "$1")/packages
    [ -f "$packages" ] && { [ -z "$full" ] || grep -q -- '-dbg ' "$packages"; } &&
        "$(home_of "$1")/bin/java" -version >/dev/null 2>&1
}

install_release() {
    local release=$1 root packages wanted said package link target loader libraries home
    root=$(root_of "$release")
    home=$(home_of "$release")
    packages=("openjdk-$release-jre-headless")
    [ -z "$full" ] || packages+=("openjdk-$release-jdk-headless" "openjdk-$release-dbg")
    read_list
    echo "install-debian-jdks: downloading ${packages[*]}" >&2
    mkdir "$scratch/$release" "$scratch/root"
    wanted=("${packages[@]}" "${LIBRARIES[@]}")
    said=$(cd "$scratch/$release" && unstable download "${wanted[@]/%/:$architecture}") ||
        fail "${packages[*]} cannot be downloaded: $(last_words <<<"$said")"
    for package in "$scratch/$release"/*.deb; do
        dpkg-deb -x "$package" "$scratch/root"
    done
    # Absolute links lead to the system's own folders.
    while IFS= read -r link; do
        target=$(readlink "$link")
        [ ! -e "$scratch/root$target" ] || ln -sfn "$root$target" "$link"
    done < <(find "$scratch/root" -type l -lname '/*')
    rm -rf "${root:?}"
    mv "$scratch/root" "$root"
    loader=$(echo "$root"/usr/lib*/ld-linux*.so.* | cut -d' ' -f1)
    libraries=$(echo "$root"/usr/lib/*-linux-gnu)
    [ -x "$loader" ] || fail "libc6 has no loader where it is expected ($loader)"
    if [ -n "$emulated" ]; then
        # Programs name an interpreter in /lib, which is a link on an installed system.
        [ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
        printf '#!/bin/sh\nexec qemu-aarch64 -cpu %s -L "%s" "$@"\n' "$PROCESSOR" "$root" >"$root/run"
        emulate_programs "$home" "$root/run"
    else
        patch_programs "$home" "$loader" "$libraries"
        printf '#!/bin/sh\nexec "%s" --library-path "%s" "$@"\n' "$loader" "$libraries" >"$root/run"
    fi
    chmod +x "$root/run"
    # The package's installation would do so: without an archive of classes, a JVM starts slowly.
    said=$("$home/bin/java" -Xshare:dump 2>&1 </dev/null) ||
        fail "Debian's JDK $release does not run here: $(last_words <<<"$said")"
    for package in "$scratch/$release"/*.deb; do
        dpkg-deb -W --showformat='${Package} ${Version}\n' "$package"
    done >"$root/packages"
    rm -rf "${scratch:?}/$release"
}

emulated=
full=
new=
releases=()
for argument in "$@"; do
    case "$argument" in
    --arm64) emulated=1 ;;
    --full) full=1 ;;
    --new) new=1 ;;
    [1-9][0-9]) releases+=("$argument") ;;
    *) fail "usage: scripts/install-debian-jdks.sh [--arm64] [--full] [--new] [RELEASE...]" ;;
    esac
done
[ ${#releases[@]} -gt 0 ] || releases=(26 27)

machine=$(dpkg --print-architecture 2>/dev/null) || fail "this system is no Debian"
architecture=$machine
tool=patchelf
if [ -n "$emulated" ]; then
    [ "$machine" != arm64 ] || fail "this machine runs JDKs for aarch64 itself: leave --arm64 out"
    architecture=arm64
    tool=cross
fi
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
homes=()
for release in "${releases[@]}"; do
    if [ -n "$new" ] || ! has "$release"; then
        scripts/install-toolchain.sh "$tool" >&2
        install_release "$release"
    fi
    echo "install-debian-jdks: $(grep "^openjdk-" "$(root_of "$release")/packages" | paste -sd,)" >&2
    homes+=("$(home_of "$release")")
done
(
    IFS=:
    echo "${homes[*]}"
)
