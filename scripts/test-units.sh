#!/usr/bin/env bash
# Builds the tests and lists them by units, for scripts that run one unit after another.
#
# A unit is a test program, or one file of a program that has several. Prints a line for each: the unit's name
# (`agent::contexts`), the filter of cargo-nextest that selects its tests, without spaces, and a digest of the
# programs that run: the test's, the agent and the command.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo nextest list --locked --run-ignored all --message-format json </dev/null | python3 -c '
import hashlib, json, os, sys

def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()

products = {}
for suite in json.load(sys.stdin)["rust-suites"].values():
    program, folder = suite["binary-path"], os.path.dirname(suite["binary-path"])
    if folder not in products:
        names = [os.path.join(folder, "libotlpprof.so"), os.path.join(folder, "..", "otlpprof")]
        products[folder] = "".join(digest(name) for name in names)
    both = hashlib.sha256((digest(program) + products[folder]).encode()).hexdigest()[:16]
    binary = suite["binary-id"]
    name = binary.split("::")[-1]
    # The unit tests of a crate are one unit.
    is_folder = os.path.exists(f"tests/{name}/main.rs")
    files = {test.split("::")[0] for test in suite["testcases"] if "::" in test} if is_folder else {None}
    for file in sorted(files, key=str):
        if file is None:
            print(name, f"binary_id(={binary})", both)
        else:
            print(f"{name}::{file}", f"binary_id(={binary})&test(/^{file}::/)", both)
'
