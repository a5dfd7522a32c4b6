#!/usr/bin/env bash
# Fetches jars from Maven Central into the cache and prints their class path:
# scripts/fetch-maven.sh [--with-dependencies] GROUP:NAME:VERSION[:CLASSIFIER]...
#
# With --with-dependencies also fetches the jars' run-time dependencies, into one folder per jar.
set -euo pipefail
cd "$(dirname "$0")/.."

with_dependencies=
if [ "${1:-}" = --with-dependencies ]; then
    with_dependencies=yes
    shift
fi
cache=$(scripts/cache-folder.sh)/maven
mkdir -p "$cache"
# One fetch at a time: concurrent ones share the cache, and Maven's repository.
exec 9>"$cache/.lock"
flock 9
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

# Runs mvn in batch mode.
maven() {
    command -v mvn >/dev/null || {
        echo "fetch-maven: needs mvn (apt-get install maven)" >&2
        exit 1
    }
    scripts/retry.sh mvn --quiet --batch-mode "$@" </dev/null >&2
}

# Prints the folder with a jar and its dependencies.
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
        # Move the complete folder into place, so that no reader sees a partial one.
        mv "$work/jars" "$folder"
        rm -rf "$work"
    fi
    jars+=("$folder/*")
}

# Fetches a jar without its dependencies.
jar() {
    local artifact=$1 name version classifier jar
    IFS=: read -r _ name version classifier <<<"$artifact"
    jar=$name-$version${classifier:+-$classifier}.jar
    jars+=("$cache/$jar")
    [ ! -f "$cache/$jar" ] || return 0
    work=$(mktemp -d "$cache/.incoming.XXXXXX")
    # In Maven's notation the packaging comes before the classifier.
    [ -z "$classifier" ] || artifact=${artifact%:*}:jar:$classifier
    maven dependency:copy "-Dartifact=$artifact" "-DoutputDirectory=$work"
    # Move the complete file into place, so that no reader sees a partial one.
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
