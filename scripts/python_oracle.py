"""Counts profiles, samples and values in files of OTLP protobuf. Started by python-oracle.sh."""

import json
import struct
import sys

from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData


def messages(data):
    """The file's messages: one, or several behind big-endian 32-bit lengths, whose first byte is below 8."""
    if not data or data[0] >= 8:
        yield data
        return
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        position += 4
        if position + length > len(data):
            raise SystemExit(f"truncated message at byte {position}")
        yield data[position : position + length]
        position += length


def count(data):
    counts = {"messages": 0, "profiles": 0, "samples": 0, "total": 0}
    for message in messages(data):
        counts["messages"] += 1
        for resource in ProfilesData.FromString(message).resource_profiles:
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    counts["profiles"] += 1
                    for sample in profile.samples:
                        counts["samples"] += 1
                        counts["total"] += sum(sample.values) if sample.values else len(sample.timestamps_unix_nano)
    return counts


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        print(json.dumps(count(file.read())))
