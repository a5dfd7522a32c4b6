#!/usr/bin/env bash
# Brings JMH and Datadog's java-profiler from Maven Central to .cache/jmh and prints the class path of both.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly JMH=1.37 DDPROF=1.22.0
folder=$PWD/.cache/jmh/$JMH-$DDPROF
if [ ! -d "$folder" ]; then
    command -v mvn >/dev/null || {
        echo "fetch-jmh: needs mvn (apt-get install maven)" >&2
        exit 1
    }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.otlpprof</groupId>
  <artifactId>context-benchmark</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.openjdk.jmh</groupId>
      <artifactId>jmh-generator-annprocess</artifactId>
      <version>$JMH</version>
    </dependency>
    <dependency>
      <groupId>com.datadoghq</groupId>
      <artifactId>ddprof</artifactId>
      <version>$DDPROF</version>
    </dependency>
  </dependencies>
</project>
POM
    mvn --quiet --batch-mode -f "$work/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$work/jars" \
        </dev/null >&2
    mkdir -p "${folder%/*}"
    # Moved there whole.
    rm -rf "${folder%/*}/.incoming"
    cp -r "$work/jars" "${folder%/*}/.incoming"
    mv "${folder%/*}/.incoming" "$folder"
fi
jars=("$folder"/*.jar)
(
    IFS=:
    echo "${jars[*]}"
)
