# Reads packages of Debian's suites apart from the system's own lists, and installs nothing; to be sourced.
# $scratch is the folder of lists and packages. Its file sources.list names the suites.

# Prints the mirror that this system's own packages come from; nothing on a system that is no Debian.
debian_mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/$' || true
}

# Makes the folders that apt needs.
make_apt_folders() {
    mkdir -p "$scratch/state/lists/partial" "$scratch/cache/archives/partial"
    : >"$scratch/state/status"
}

# Runs an apt command on those suites: apt_apart ARCHITECTURES COMMAND ARGUMENT…
apt_apart() {
    "$2" -qq -o Acquire::Retries=3 \
        -o Dir::Etc::sourcelist="$scratch/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State="$scratch/state" -o Dir::State::status="$scratch/state/status" \
        -o Dir::Cache="$scratch/cache" -o APT::Architectures="$1" \
        -o APT::Sandbox::User=root "${@:3}" </dev/null
}
