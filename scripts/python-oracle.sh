#!/bin/sh
# Counts the contents of OTLP profile files as OpenTelemetry's own Python package reads them.
#
#   scripts/python-oracle.sh FILE...     prints one line of JSON for each file
#   scripts/python-oracle.sh -           prints one line of JSON for each file name read from standard input
#   scripts/python-oracle.sh page ARGUMENTS...    compares a flame graph page with its files (page_truth.py)
#   scripts/python-oracle.sh views ARGUMENTS...   compares its views in a browser with them (page_views.py)
#   scripts/python-oracle.sh stacks ARGUMENTS...  prints the sum of each stack (stack_truth.py)
#
# Files are protobuf, plain or length-prefixed, or JSON, one document per line. Needs python3 with venv, and
# PyPI for the first run.
set -eu

# The version of the package that has the layout of opentelemetry-proto v1.10.
package=opentelemetry-proto==1.45.2

scripts=$(cd "$(dirname "$0")" && pwd)
cache=$("$scripts/cache-folder.sh")
venv=$cache/python-oracle-${package#*==}

# Tests run concurrently, and one of them installs. An unfinished folder is created again.
exec 9>"$venv.lock"
flock 9
if [ ! -e "$venv/installed" ]; then
    rm -rf "$venv"
    said=$({ python3 -m venv "$venv" &&
        "$scripts/retry.sh" "$venv/bin/pip" install --quiet --disable-pip-version-check \
            "$package"; } 2>&1) || {
        echo "python-oracle: $package cannot be installed: $(echo "$said" | tail -n 1 | cut -c 1-200)" >&2
        exit 1
    }
    touch "$venv/installed"
fi
exec 9>&-

case "${1-}" in
page) program=page_truth.py ;;
views) program=page_views.py ;;
stacks) program=stack_truth.py ;;
*) program=python_oracle.py ;;
esac
[ "$program" = python_oracle.py ] || shift
exec "$venv/bin/python" "$scripts/$program" "$@"
