#!/usr/bin/env python3
"""Reads the results of tests that failed and were run again (scripts/test.sh).

    second_try.py filter FIRST              prints the failed tests as a filter of cargo-nextest
    second_try.py judge FIRST AGAIN LEDGER  whether all of them passed the second time

FIRST and AGAIN are JUnit files of cargo-nextest. A test that was ended because it took too long hangs, and
is not run again. `judge` prints each test that passed the second time as FLAKY, with its first failure, and
writes their names into LEDGER.
"""

import sys
import xml.etree.ElementTree as xml

# The lines of a first failure to print again.
LINES = 30


def results(path):
    """The failure of each test, `None` if it passed, by binary and name."""
    found = {}
    try:
        suites = xml.parse(path).getroot()
    except FileNotFoundError:
        return found
    for suite in suites.iter("testsuite"):
        for case in suite.iter("testcase"):
            failure = case.find("failure")
            if failure is None:
                failure = case.find("error")
            found[suite.get("name"), case.get("name")] = (failure, case)
    return found


def failed(path):
    return {test: result for test, result in results(path).items() if result[0] is not None}


def output(failure, case):
    texts = [case.findtext("system-out"), case.findtext("system-err"), failure.text]
    lines = "\n".join(text for text in texts if text).splitlines()
    return "\n".join("    " + line for line in lines[-LINES:])


def main():
    command, first = sys.argv[1], failed(sys.argv[2])
    if command == "filter":
        again = [test for test, (failure, _) in first.items() if "timeout" not in failure.get("type", "")]
        print(" | ".join(f"(binary_id(={binary}) & test(={name}))" for binary, name in again) or "none()")
        return 0
    again, ledger = results(sys.argv[3]), sys.argv[4]
    flaky, red = [], []
    for test, result in first.items():
        passed = test in again and again[test][0] is None
        (flaky if passed else red).append((test, result))
    with open(ledger, "w", encoding="utf-8") as file:
        file.writelines(" ".join(test) + "\n" for test, _ in flaky)
    for (binary, name), (failure, case) in flaky:
        print(f"FLAKY {binary} {name}, which failed first with:\n{output(failure, case)}")
    for (binary, name), _ in red:
        print(f"FAIL {binary} {name}")
    return 1 if red else 0


sys.exit(main())
