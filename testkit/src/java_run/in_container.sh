#!/bin/sh
# Runs a command as in a container, in the mount namespace of its caller:
# in_container.sh ROOT VOLUME PLACE FOLDER... -- COMMAND [ARGUMENT...]
#
# The command's root is read-only, and is mounted on the empty folder ROOT. It has the system's programs and
# libraries, each FOLDER under its own path, and the folder VOLUME, which is writable, at PLACE. It has a /tmp
# only if PLACE is one. CONTROL_GROUPS names the folders of control groups that the command joins.
set -eu
for group in ${CONTROL_GROUPS:-}; do
    # The process that writes this number.
    echo 0 >"$group/cgroup.procs"
done
root=$1
volume=$2
place=$3
shift 3
mount -t tmpfs tmpfs "$root"

# Mounts a folder of the system under its own path, only for reading.
show() {
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
}

for name in usr bin sbin lib lib64 etc; do
    if [ -L "/$name" ]; then
        cp -P "/$name" "$root/$name"
    elif [ -d "/$name" ]; then
        show "/$name"
    fi
done
# Before the folders, which may be below PLACE.
mkdir "$root$place"
mount --bind "$volume" "$root$place"
while [ "$1" != -- ]; do
    show "$1"
    shift
done
shift
mkdir "$root/dev" "$root/proc" "$root/outside"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
cd "$root"
pivot_root . outside
cd /
umount -l /outside
rmdir /outside
mount -o remount,ro /
exec "$@"
