#!/bin/sh
# Builds the OpenTelemetry collector that the tests upload to, unless it is in the cache, and prints its path.
#
#   scripts/collector.sh           prints the path of the binary on stdout; everything else goes to stderr
#
# Needs `go` (scripts/install-toolchain.sh go) and a Go module proxy for the first build, which takes about
# two minutes of CPU time.
set -eu

# The newest release whose parts the module proxy serves completely.
core=v0.162.0
contrib=v0.162.0
# The stable modules (confmap providers) of that release have version numbers of their own.
stable=v1.68.0

root=$(cd "$(dirname "$0")/.." && pwd)
shared=$("$root/scripts/cache-folder.sh")
cache=$shared/collector

# Prints kind, module and version of every part of the collector.
parts() {
    cat <<PARTS
receivers go.opentelemetry.io/collector/receiver/otlpreceiver $core
exporters go.opentelemetry.io/collector/exporter/debugexporter $core
exporters github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter $contrib
providers go.opentelemetry.io/collector/confmap/provider/envprovider $stable
providers go.opentelemetry.io/collector/confmap/provider/fileprovider $stable
providers go.opentelemetry.io/collector/confmap/provider/yamlprovider $stable
PARTS
}

# Prints the builder's configuration.
manifest() {
    printf 'dist:\n  name: otelcol\n  version: %s\n  output_path: %s\n' "$core" "$1"
    for kind in receivers exporters providers; do
        echo "$kind:"
        parts | sed -n "s/^$kind /  - gomod: /p"
    done
}

# The folder's name contains a checksum of the versions, so that other versions get another folder.
key=$core-$(parts | cksum | cut -d ' ' -f 1)
binary=$cache/$key/otelcol
if [ -x "$binary" ]; then
    echo "$binary"
    exit 0
fi

PATH=$PATH:/usr/local/go/bin:$shared/go/bin
if ! command -v go >/dev/null; then
    echo "collector.sh: go is not on the PATH; run scripts/install-toolchain.sh go" >&2
    exit 1
fi

mkdir -p "$cache"
# One build at a time: a process that had to wait finds the finished binary.
exec 9>"$cache/lock"
flock 9
if [ ! -x "$binary" ]; then
    build=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$build"' EXIT
    trap 'exit 1' HUP INT TERM
    manifest "$build/src" >"$build/builder.yaml"
    echo "collector.sh: building the OpenTelemetry collector $core (about two minutes, once)" >&2
    # The builder only writes the sources. Its own next step would be `go mod tidy`, which needs modules that
    # only the tests of fileexporter import and that the proxy does not serve. Resolving only the modules of
    # the build works.
    nice go run "go.opentelemetry.io/collector/cmd/builder@$core" --config "$build/builder.yaml" \
        --skip-get-modules --skip-compilation >&2
    {
        printf 'module otelcol\n\ngo 1.25.0\n\nrequire go.opentelemetry.io/collector/otelcol %s\n' "$core"
        parts | sed 's/^[a-z]* /require /'
    } >"$build/src/go.mod"
    (cd "$build/src" && CGO_ENABLED=0 nice go build -mod=mod -trimpath -ldflags '-s -w' -o otelcol .) >&2
    # Publish the binary under its final name only when it is complete.
    mkdir -p "$cache/$key"
    mv "$build/src/otelcol" "$binary"
fi
echo "$binary"
