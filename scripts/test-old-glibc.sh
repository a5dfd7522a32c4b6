#!/usr/bin/env bash
# Runs the released library in a JVM, and the released command, on Debian 11's C library:
# scripts/test-old-glibc.sh FOLDER
#
# FOLDER is the result of scripts/build-release.sh. The C library is unpacked from Debian's own package into
# the cache. The tested programs run in a root directory of their own with that library, the JDK, FOLDER and
# the classes of the test programs, and nothing else of this system. Needs root, or user namespaces, and a
# Debian mirror to download from.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian-suite.sh

cache=$(scripts/cache-folder.sh)
readonly DEBIAN=$cache/debian11

scratch=
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

fail() {
    echo "test-old-glibc: $*" >&2
    exit 1
}

# Prints a prominent message; fails if CI is set, where every test has to run.
not_tested() {
    [ -z "${CI:-}" ] || fail "$*"
    echo "test-old-glibc: NOT TESTED: $*" >&2
    exit 0
}

# Runs apt-get on Debian 11's list only. Installs nothing.
debian11() {
    apt_apart "$(dpkg --print-architecture)" apt-get "$@" 2>&1
}

install_debian11() {
    [ -x "$DEBIAN/sbin/ldconfig" ] && return
    command -v apt-get >/dev/null || not_tested "no apt-get to download Debian 11's C library with"
    # Uses the mirror that this system's own packages come from.
    local mirror said
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || not_tested "this system is no Debian, whose mirror would have Debian 11's C library"
    mkdir -p "$DEBIAN"
    scratch=$(mktemp -d "$DEBIAN/.download.XXXXXX")
    choose_suites "$mirror bullseye"
    mkdir "$scratch/root"
    said=$(debian11 update && cd "$scratch" && debian11 download libc6 libc-bin) ||
        fail "Debian 11's C library cannot be downloaded: $(tail -n1 <<<"$said" | cut -c 1-200)"
    local package
    for package in "$scratch"/*.deb; do
        dpkg-deb -x "$package" "$scratch/root"
    done
    rm -rf "$scratch/root/usr/share" "${DEBIAN:?}"/{lib,lib64,sbin,usr,etc,bin}
    mv "$scratch/root"/* "$DEBIAN/"
}

# Prints the newest JDK whose JVM needs only libraries in the JDK or in the C library.
find_jdk() {
    local jdk foreign
    for jdk in $(printf '%s\n' "$cache"/jdks/* | sort -rV); do
        foreign=$(readelf -dW "$jdk"/bin/java "$jdk"/lib/server/libjvm.so \
            "$jdk"/lib/lib{jli,java,zip,net,nio,jimage}.so 2>/dev/null |
            sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
            grep -vE '^(lib(jvm|jli|java|zip|net|nio|jimage|verify|c|m|dl|rt|pthread)|ld-linux-.*)\.so' ||
            true)
        if [ -z "$foreign" ] &&
            scripts/check-loads.sh 2.31 "$(realpath "$jdk")/lib/server/libjvm.so" >/dev/null 2>&1; then
            realpath "$jdk"
            return
        fi
    done
    fail "no JDK in the cache runs on glibc 2.31 (scripts/install-jdks.sh)"
}

[ $# = 1 ] && [ -f "$1/libotlpprof.so" ] ||
    fail "usage: scripts/test-old-glibc.sh FOLDER (of scripts/build-release.sh)"
folder=$(realpath "$1")
if [ "$(id -u)" = 0 ]; then
    alone=(unshare --mount --fork)
else
    alone=(unshare --user --map-root-user --mount --pid --fork)
fi
"${alone[@]}" true 2>/dev/null || not_tested "no mount namespace: neither root nor user namespaces"
install_debian11
jdk=$(find_jdk)
testkit=$(scripts/build-testkit.sh)
work=$(mktemp -d)
trap 'rm -rf "$work" "$scratch"' EXIT
mkdir "$work/root" "$work/out"
export DEBIAN

# Runs a program in a root directory of its own: in_debian11 PROGRAM [ARGUMENT...]
in_debian11() {
    # The mounts disappear with the namespace.
    timeout 120 "${alone[@]}" bash -euc '
        root=$1 jdk=$2 folder=$3 programs=$4 out=$5
        shift 5
        mount -t tmpfs none "$root"
        mkdir "$root"/{proc,dev,tmp,jdk,release,programs,out}
        mount --rbind /proc "$root/proc"
        mount --rbind /dev "$root/dev"
        for part in lib lib64 usr; do
            mkdir "$root/$part"
            mount --bind "$DEBIAN/$part" "$root/$part"
        done
        mount --bind "$jdk" "$root/jdk"
        mount --bind "$folder" "$root/release"
        mount --bind "$programs" "$root/programs"
        mount --bind "$out" "$root/out"
        exec chroot "$root" "$@"' bash "$work/root" "$jdk" "$folder" "$testkit/testprograms" \
        "$work/out" "$@" </dev/null
}

options=file=/out/profiles.otlp,interval=1s,cpu=1ms,wall,jfr
in_debian11 /jdk/bin/java "-agentpath:/release/libotlpprof.so=$options" \
    -cp /programs programs.UserLoop 3 >"$work/java.log" 2>&1 ||
    fail "the JVM failed: $(cat "$work/java.log")"
[ -s "$work/out/profiles.otlp" ] || fail "no profile: $(cat "$work/java.log")"
in_debian11 /release/otlpprof validate /out/profiles.otlp >"$work/validate.log" 2>&1 ||
    fail "$(cat "$work/validate.log")"
in_debian11 /release/otlpprof print /out/profiles.otlp >"$work/print.log" 2>&1 ||
    fail "$(cat "$work/print.log")"
# Stacks, not the functions with the highest values: a method that is inlined has few samples of its own.
stacks_of() {
    in_debian11 /release/otlpprof export /out/profiles.otlp --type "$1" --to collapsed -o /out/stacks.txt \
        >"$work/export.log" 2>&1 || fail "$(cat "$work/export.log")"
    cut -c 1-200 "$work/out/stacks.txt"
}
stacks=$(stacks_of cpu)
grep -q '^programs\.UserLoop\.main;' <<<"$stacks" ||
    fail "no stack of the program: $(head -n 20 <<<"$stacks")"
# This C library begins a thread in `clone`, and calls `start_thread` of libpthread, which is stripped.
stacks=$(stacks_of wall)
grep -qE '^(__)?clone;start_thread;' <<<"$stacks" ||
    fail "no thread begins in clone and start_thread: $(head -n 20 <<<"$stacks")"
echo "test-old-glibc: $(basename "$jdk") is profiled on glibc 2.31"
