#!/usr/bin/env bash
# Brings jars from Maven Central to .cache/maven and prints their class path:
# scripts/fetch-maven.sh [--with-dependencies] GROUP:NAME:VERSION[:CLASSIFIER]...
#
# With --with-dependencies what they need at run time comes as well, into a folder for each of them.
set -euo pipefail
cd "$(dirname "$0")/.."

with_dependencies=
if [ "${1:-}" = --with-dependencies ]; then
    with_dependencies=yes
    shift
fi
cache=$PWD/.cache/maven
mkdir -p "$cache"
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

# Runs mvn in batch mode.
maven() {
    command -v mvn >/dev/null || {
        echo "fetch-maven: needs mvn (apt-get install maven)" >&2
        exit 1
    }
    mvn --quiet --batch-mode "$@" </dev/null >&2
}

# The folder with the jar and what it needs.
tree() {
    local artifact=$1 group name version classifier folder
    IFS=: read -r group name version classifier <<<"$artifact"
    folder=$cache/$name-$version${classifier:+-$classifier}
    if [ ! -d "$folder" ]; then
        work=$(mktemp -d "$cache/.incoming.XXXXXX")
        cat >"$work/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.otlpprof</groupId>
  <artifactId>fetched</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>$group</groupId>
      <artifactId>$name</artifactId>
      <version>$version</version>${classifier:+
      <classifier>$classifier</classifier>}
    </dependency>
  </dependencies>
</project>
END
        maven --file "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
            "-DoutputDirectory=$work/jars"
        # Moved there whole.
        mv "$work/jars" "$folder"
        rm -rf "$work"
    fi
    jars+=("$folder/*")
}

# The jar alone.
jar() {
    local artifact=$1 name version classifier jar
    IFS=: read -r _ name version classifier <<<"$artifact"
    jar=$name-$version${classifier:+-$classifier}.jar
    jars+=("$cache/$jar")
    [ ! -f "$cache/$jar" ] || return 0
    work=$(mktemp -d "$cache/.incoming.XXXXXX")
    # Its packaging stands before the classifier there.
    [ -z "$classifier" ] || artifact=${artifact%:*}:jar:$classifier
    maven dependency:copy "-Dartifact=$artifact" "-DoutputDirectory=$work"
    # Moved there whole.
    mv "$work/$jar" "$cache/$jar"
    rm -rf "$work"
}

jars=()
for artifact in "$@"; do
    if [ -n "$with_dependencies" ]; then
        tree "$artifact"
    else
        jar "$artifact"
    fi
done
IFS=:
echo "${jars[*]}"
