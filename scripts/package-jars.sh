#!/usr/bin/env bash
# Creates the artifacts to publish for Java programs, in target/package:
# scripts/package-jars.sh [--library FILE]... [--notices FOLDER] [--out DIR]
#
#   otlpprof-VERSION.jar                 the classes of java/api (for Java 11 and later), and the agent's
#                                        libraries, each in the folder of its platform
#   otlpprof-opentelemetry-VERSION.jar   the classes of java/opentelemetry, which link samples to
#                                        OpenTelemetry's current span
#   each with -sources.jar, -javadoc.jar and .pom
#   otlpprof-opentelemetry-extension-VERSION.jar
#                                        the classes of both, as an extension of the OpenTelemetry Java
#                                        agent
#
# Coordinates: io.otlpprof:NAME:VERSION. By default scripts/build-release.sh builds the library for this
# machine. --library names a built library instead, once for each platform (scripts/elf-platform.sh).
# --notices names the licenses of what the libraries contain (scripts/package-notices.sh). The same input
# gives the same bytes. Needs a JDK, and Maven for OpenTelemetry's jars.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/reproducible.sh

fail() {
    echo "package-jars: $*" >&2
    exit 1
}

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$target/package
libraries=()
notices=
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
    --library) libraries+=("$(realpath -m "$2")") ;;
    --notices) notices=$(realpath -m "$2") ;;
    --out) out=$(realpath -m "$2") ;;
    *) fail "unknown option: $1" ;;
    esac
    shift 2
done
for tool in javac javadoc jar; do
    command -v "$tool" >/dev/null || fail "needs $tool (scripts/install-toolchain.sh jdk)"
done
date=$(date -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
[[ $(jar --help) == *--date* ]] || fail "needs a jar with the option --date (JDK 17.0.3 or later)"
if [ ${#libraries[@]} = 0 ]; then
    libraries=("$(scripts/build-release.sh)/libotlpprof.so")
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/done"

# Compiles sources and adds the license: compile CLASS_PATH CLASSES SOURCE...
compile() {
    # Without -options: newer compilers warn about support for old releases. Without -classfile: it warns
    # about annotations in OpenTelemetry's classes.
    javac --release 11 -g -encoding UTF-8 -Xlint:all,-options,-classfile -Werror -cp "$1" -d "$2" "${@:3}"
    mkdir -p "$2/META-INF"
    cp LICENSE "$2/META-INF/"
}

# Prints a dependency of a pom: dependency GROUP NAME VERSION
dependency() {
    echo "    <dependency>"
    echo "      <groupId>$1</groupId>"
    echo "      <artifactId>$2</artifactId>"
    echo "      <version>$3</version>"
    echo "    </dependency>"
}

# Creates the four files of an artifact. SOURCES is the folder of its package's sources:
# publish NAME DESCRIPTION DEPENDENCIES CLASS_PATH CLASSES SOURCES MANIFEST
publish() {
    local name=$1 description=$2 dependencies=$3 class_path=$4 classes=$5 sources=$6 manifest=$7
    local files=$work/$name package=${6#java/*/}
    mkdir -p "$classes/META-INF/maven/io.otlpprof/$name" "$files/sources/$package" "$files/sources/META-INF"
    cat >"$work/done/$name-$VERSION.pom" <<END
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
         xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 https://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.otlpprof</groupId>
  <artifactId>$name</artifactId>
  <version>$VERSION</version>
  <packaging>jar</packaging>
  <name>$name</name>
  <description>$description</description>
  <licenses>
    <license>
      <name>Apache License, Version 2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>
  <dependencies>
$dependencies
  </dependencies>
</project>
END
    cp "$work/done/$name-$VERSION.pom" "$classes/META-INF/maven/io.otlpprof/$name/pom.xml"
    cp LICENSE "$files/sources/META-INF/"
    cp "$sources"/*.java "$files/sources/$package/"
    javadoc --release 11 -quiet -encoding UTF-8 -Xdoclint:all -Werror -notimestamp -cp "$class_path" \
        -d "$files/javadoc" "$sources"/*.java >&2
    jar --create --date "$date" --file "$work/done/$name-$VERSION.jar" --manifest "$manifest" -C "$classes" .
    jar --create --date "$date" --file "$work/done/$name-$VERSION-sources.jar" -C "$files/sources" .
    jar --create --date "$date" --file "$work/done/$name-$VERSION-javadoc.jar" -C "$files/javadoc" .
}

api=$work/api
compile "" "$api" java/api/io/otlpprof/*.java
for library in "${libraries[@]}"; do
    platform=$(scripts/elf-platform.sh "$library")
    folder=$api/io/otlpprof/$platform
    [ ! -e "$folder" ] || fail "two libraries for $platform"
    mkdir -p "$folder"
    cp "$library" "$folder/libotlpprof.so"
done
[ -z "$notices" ] || cp -r "$notices/licenses" "$api/META-INF/"
cat >"$work/manifest" <<END
Automatic-Module-Name: io.otlpprof
Implementation-Title: otlpprof
Implementation-Version: $VERSION
Premain-Class: io.otlpprof.JavaAgent
Agent-Class: io.otlpprof.JavaAgent
END
publish otlpprof "OpenTelemetry-native continuous profiler for the JVM: its Java API, and the agent" \
    "" "" "$api" java/api/io/otlpprof "$work/manifest"

# The artifact does not contain OpenTelemetry: the application provides it, in the application's version.
opentelemetry=$(scripts/fetch-opentelemetry.sh)
companion=$work/companion
compile "$api:$opentelemetry" "$companion" java/opentelemetry/io/otlpprof/opentelemetry/*.java
mkdir -p "$companion/META-INF/services"
services=$companion/META-INF/services
echo io.otlpprof.opentelemetry.ProfiledAutoConfiguration \
    >"$services/io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider"

# The extension has all classes in one file, because the Java agent's extension loader needs that. The Java
# agent installs context storages in its own way. The library is left out: loaded by that class loader, it
# would serve only these classes, which start no profiler.
extension=$work/done/otlpprof-opentelemetry-extension-$VERSION.jar
mkdir -p "$work/extension/META-INF"
cp -r "$api/io" "$companion/io" "$work/extension"
rm -r "$work/extension/io/otlpprof"/linux-*
cp -r "$companion/META-INF/services" LICENSE "$work/extension/META-INF"
jar --create --date "$date" --file "$extension" -C "$work/extension" .

echo io.otlpprof.opentelemetry.ProfiledContextStorageProvider \
    >"$services/io.opentelemetry.context.ContextStorageProvider"
cat >"$work/manifest" <<END
Automatic-Module-Name: io.otlpprof.opentelemetry
Implementation-Title: otlpprof-opentelemetry
Implementation-Version: $VERSION
END
publish otlpprof-opentelemetry "Links profiles to OpenTelemetry's spans" \
    "$(dependency io.otlpprof otlpprof "$VERSION")" \
    "$api:$opentelemetry" "$companion" java/opentelemetry/io/otlpprof/opentelemetry "$work/manifest"

mkdir -p "$out"
# Replace each file atomically: JVMs that have the old file open keep reading it.
for file in "$work/done"/*; do
    cp "$file" "$out/.incoming"
    mv "$out/.incoming" "$out/${file##*/}"
done
echo "$out/otlpprof-$VERSION.jar"
