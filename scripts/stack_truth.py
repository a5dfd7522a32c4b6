"""Prints the sum of each stack in OTLP files.

    stack_truth.py FILE... [FILTERS]

Reads the files by OpenTelemetry's Python package, independently of otlpprof's code. Prints one line of JSON:
a list of [type, unit, names of the frames from the root on, value]. Of states the last one of each process
counts. The filters are those of page_truth.py.
"""

import collections
import json
import sys

from page_truth import parser, rows_of, without_series


def main(arguments):
    options = parser().parse_args(["no page", *arguments])
    rows, states, _ = rows_of(options.new, 0, {"times": None, "labels": []}, options)
    sums = collections.Counter()
    for (name, unit, stack, *_), value in [*rows.items(), *without_series(states).items()]:
        sums[name, unit, tuple(frame for frame, _ in stack)] += value
    print(json.dumps([[name, unit, stack, value] for (name, unit, stack), value in sorted(sums.items())]))


if __name__ == "__main__":
    main(sys.argv[1:])
