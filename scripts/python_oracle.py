"""Counts profiles, samples and values in files of OTLP profiles. Started by python-oracle.sh."""

import base64
import json
import struct
import sys

from google.protobuf import json_format
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


def with_base64_ids(value):
    """OTLP/JSON has ids in hexadecimal, the JSON mapping of protobuf all bytes in base64."""
    if isinstance(value, list):
        return [with_base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "profileId")
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else with_base64_ids(item)
        for key, item in value.items()
    }


def decoded(data):
    if data[:1] == b"{":
        for line in data.splitlines():
            yield json_format.ParseDict(with_base64_ids(json.loads(line)), ProfilesData())
    else:
        yield from map(ProfilesData.FromString, messages(data))


def count(data):
    counts = {"messages": 0, "profiles": 0, "samples": 0, "total": 0}
    for message in decoded(data):
        counts["messages"] += 1
        for resource in message.resource_profiles:
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    counts["profiles"] += 1
                    for sample in profile.samples:
                        counts["samples"] += 1
                        counts["total"] += sum(sample.values) if sample.values else len(sample.timestamps_unix_nano)
    return counts


def paths():
    for path in sys.argv[1:]:
        if path == "-":
            # Read line by line: the caller waits for each answer before it sends the next name.
            yield from (line.rstrip("\n") for line in iter(sys.stdin.readline, ""))
        else:
            yield path


def main():
    for path in paths():
        try:
            with open(path, "rb") as file:
                answer = count(file.read())
        except Exception as error:
            answer = {"error": f"{path}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
