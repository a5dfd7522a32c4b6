#!/usr/bin/env bash
# Makes what is published for Java programs, in target/package: scripts/package.sh [--library FILE]... [--out DIR]
#
#   otlpprof-VERSION.jar           the classes of java/api (for Java 11 and later), and the agent's library
#   otlpprof-VERSION-sources.jar   -javadoc.jar   .pom
#
# Coordinates: io.otlpprof:otlpprof:VERSION. The library is the release build for this machine; with --library, given once
# for each architecture, it is one that is built already. Needs a JDK.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "package: $*" >&2
    exit 1
}

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$target/package
libraries=()
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
    --library) libraries+=("$(realpath -m "$2")") ;;
    --out) out=$(realpath -m "$2") ;;
    *) fail "no option: $1" ;;
    esac
    shift 2
done
for tool in javac javadoc jar; do
    command -v "$tool" >/dev/null || fail "needs $tool (scripts/install-toolchain.sh jdk)"
done
if [ ${#libraries[@]} = 0 ]; then
    cargo build --release --locked --lib </dev/null >&2
    libraries=("$target/release/libotlpprof.so")
fi

# e_machine of the ELF header, as two bytes (elf.h: EM_X86_64, EM_AARCH64).
architecture() {
    [ "$(od -An -tx1 -N6 "$1" | tr -d ' ')" = 7f454c460201 ] || fail "$1 is no 64-bit little-endian ELF file"
    case $(od -An -tu2 -j18 -N2 "$1" | tr -d ' ') in
    62) echo x86_64 ;;
    183) echo aarch64 ;;
    *) fail "$1 is for no architecture that the agent runs on" ;;
    esac
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
name=otlpprof-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
classes=$work/classes
sources=(java/api/io/otlpprof/*.java)

# -options: newer compilers warn that they will drop old releases one day.
javac --release 11 -g -encoding UTF-8 -Xlint:all,-options -Werror -d "$classes" "${sources[@]}"
for library in "${libraries[@]}"; do
    [ -f "$library" ] || fail "no file: $library"
    machine=$(architecture "$library")
    folder=$classes/io/otlpprof/linux-$machine
    [ ! -e "$folder" ] || fail "two libraries for $machine"
    mkdir -p "$folder"
    cp "$library" "$folder/libotlpprof.so"
done

cat >"$work/$name.pom" <<END
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
         xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 https://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.otlpprof</groupId>
  <artifactId>otlpprof</artifactId>
  <version>$version</version>
  <packaging>jar</packaging>
  <name>otlpprof</name>
  <description>OpenTelemetry-native continuous profiler for the JVM: its Java API, and the agent</description>
  <licenses>
    <license>
      <name>Apache License, Version 2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>
</project>
END
cat >"$work/manifest" <<END
Automatic-Module-Name: io.otlpprof
Implementation-Title: otlpprof
Implementation-Version: $version
Premain-Class: io.otlpprof.JavaAgent
Agent-Class: io.otlpprof.JavaAgent
END
mkdir -p "$classes/META-INF/maven/io.otlpprof/otlpprof" "$work/sources/io/otlpprof" "$work/sources/META-INF"
cp "$work/$name.pom" "$classes/META-INF/maven/io.otlpprof/otlpprof/pom.xml"
cp LICENSE "$classes/META-INF/"
cp LICENSE "$work/sources/META-INF/"
cp "${sources[@]}" "$work/sources/io/otlpprof/"
javadoc --release 11 -quiet -encoding UTF-8 -Xdoclint:all -Werror -notimestamp -d "$work/javadoc" "${sources[@]}" >&2

mkdir -p "$work/done"
jar --create --file "$work/done/$name.jar" --manifest "$work/manifest" -C "$classes" .
jar --create --file "$work/done/$name-sources.jar" -C "$work/sources" .
jar --create --file "$work/done/$name-javadoc.jar" -C "$work/javadoc" .
cp "$work/$name.pom" "$work/done/"
mkdir -p "$out"
# Each is moved there whole: JVMs that have the old one open keep it.
for file in "$work/done"/*; do
    cp "$file" "$out/.incoming"
    mv "$out/.incoming" "$out/${file##*/}"
done
echo "$out/$name.jar"
