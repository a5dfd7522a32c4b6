"""Prints the sum of each stack in OTLP files.

    stack_truth.py FILE...

Reads the files by OpenTelemetry's Python package, independently of otlpprof's code. Prints one line of JSON:
a list of [type, unit, names of the frames from the root on, value]. Of states the last one of each process
counts.
"""

import collections
import json
import sys

from page_truth import parser, rows_of, without_series


def main(files):
    without_filters = parser().parse_args(["no page", *files])
    rows, states = rows_of(files, 0, {"times": None, "labels": []}, without_filters)
    sums = collections.Counter()
    for (name, unit, stack, *_), value in [*rows.items(), *without_series(states).items()]:
        sums[name, unit, tuple(frame for frame, _ in stack)] += value
    print(json.dumps([[name, unit, stack, value] for (name, unit, stack), value in sorted(sums.items())]))


if __name__ == "__main__":
    main(sys.argv[1:])
