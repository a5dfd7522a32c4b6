#!/usr/bin/env bash
# Makes the jar that links samples to OpenTelemetry's current span: scripts/package-opentelemetry.sh API OUT
#
# API is the jar of scripts/package.sh, or the folder of its classes. OUT gets otlpprof-opentelemetry-VERSION.jar, and in
# OUT/test the program that tests run. OpenTelemetry's jars are brought from Maven Central to .cache/opentelemetry. Prints
# what the program needs on its class path, beside API.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly OPENTELEMETRY=1.49.0
[ $# = 2 ] || {
    echo "package-opentelemetry: needs API and OUT" >&2
    exit 1
}
api=$(realpath "$1")
out=$(realpath -m "$2")
cache=$PWD/.cache/opentelemetry
jars=
for artifact in context api sdk-common sdk-trace; do
    jar=$cache/opentelemetry-$artifact-$OPENTELEMETRY.jar
    if [ ! -f "$jar" ]; then
        command -v mvn >/dev/null || {
            echo "package-opentelemetry: needs mvn (apt-get install maven)" >&2
            exit 1
        }
        incoming=$(mktemp -d)
        mvn --quiet --batch-mode dependency:copy "-Dartifact=io.opentelemetry:opentelemetry-$artifact:$OPENTELEMETRY" \
            "-DoutputDirectory=$incoming" </dev/null >&2
        mkdir -p "$cache"
        # Moved there whole.
        cp "$incoming/${jar##*/}" "$cache/.incoming"
        mv "$cache/.incoming" "$jar"
        rm -rf "$incoming"
    fi
    jars=$jars:$jar
done

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# -options: newer compilers warn that they will drop old releases one day. -classfile: annotations of OpenTelemetry's.
compile=(javac --release 11 -g -encoding UTF-8 -Xlint:all,-options,-classfile -Werror)
"${compile[@]}" -cp "$api$jars" -d "$work" java/opentelemetry/io/otlpprof/opentelemetry/*.java
mkdir -p "$work/META-INF/services" "$out/test"
cp LICENSE "$work/META-INF/"
echo io.otlpprof.opentelemetry.ProfiledContextStorageProvider \
    >"$work/META-INF/services/io.opentelemetry.context.ContextStorageProvider"
jar --create --file "$out/otlpprof-opentelemetry-$version.jar" -C "$work" .
"${compile[@]}" -Xlint:-try -cp "$api$jars" -d "$out/test" java/opentelemetry/programs/*.java
echo "$out/otlpprof-opentelemetry-$version.jar:$out/test$jars"
