# Reads packages of Debian's suites apart from the system's own lists, and installs nothing; to be sourced.
# $scratch is the folder of lists and packages.

# Prints the mirror that this system's own packages come from; nothing on a system that is no Debian.
debian_mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/$' || true
}

# Chooses the suites that apt_apart reads: choose_suites "MIRROR SUITE"…
choose_suites() {
    mkdir -p "$scratch/state/lists/partial" "$scratch/cache/archives/partial"
    : >"$scratch/state/status"
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s main\n' "$@" \
        >"$scratch/sources.list"
}

# Runs an apt command on the chosen suites: apt_apart ARCHITECTURES COMMAND ARGUMENT…
apt_apart() {
    "$2" -qq -o Acquire::Retries=3 \
        -o Dir::Etc::sourcelist="$scratch/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State="$scratch/state" -o Dir::State::status="$scratch/state/status" \
        -o Dir::Cache="$scratch/cache" -o APT::Architectures="$1" \
        -o APT::Sandbox::User=root "${@:3}" </dev/null
}
