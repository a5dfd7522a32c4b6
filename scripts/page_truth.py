"""Compares a flame graph page with the OTLP files that it was made of.

    page_truth.py PAGE NEW... [--base BASE...] [--lines] [FILTERS]

Reads the files by OpenTelemetry's Python package and the page by the format of its data, independently of
otlpprof's code. Every row must be equal: type, stack, labels, time step, side, value. Labels are the attributes
of samples, and those of resources that differ among the resources of a side. The filters are those of the
command that wrote the page: --type, --where, --thread, --frame, --without, --from, --to. Prints one line of
JSON; exits with 1 at the first difference.
"""

import argparse
import base64
import collections
import datetime
import functools
import json
import re
import sys
import zlib

from python_oracle import decoded


class Page:
    """The decoded data of a page."""

    def __init__(self, html):
        text = re.search(r'id="profile">([^<]*)</script>', html).group(1)
        data = zlib.decompress(base64.b64decode(text))
        assert data[:5] == b"OTPP\x01", data[:5]
        end = 9 + int.from_bytes(data[5:9], "little")
        self.header = json.loads(data[9:end])
        self.sections = {
            name: data[end + offset : end + offset + length]
            for name, (offset, length) in self.header["sections"].items()
        }

    def varints(self, name, count):
        """The numbers of a section; an absent one has zeros."""
        if name not in self.sections:
            return [0] * count
        numbers, number, shift = [], 0, 0
        for byte in self.sections[name]:
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                numbers.append(number)
                number, shift = 0, 0
        assert len(numbers) == count, (name, len(numbers), count)
        return numbers

    def texts(self, lengths, texts, count):
        at, found = 0, []
        for length in self.varints(lengths, count):
            found.append(self.sections[texts][at : at + length].decode())
            at += length
        return found

    def stacks(self):
        """The stack of each node: names and details from the root on."""
        frames, nodes = self.header["frames"], self.header["nodes"]
        names = self.texts("frame_name_lengths", "frame_names", frames) if frames else []
        details_of = self.varints("frame_details", frames)
        details = [""] + self.texts("detail_lengths", "details", max(details_of, default=0))
        titles = [(name, details[detail]) for name, detail in zip(names, details_of)]
        pops, high = self.varints("node_pops", nodes), self.varints("node_frames_high", nodes - 1)
        low = self.sections.get("node_frames_low", bytes(nodes - 1))
        of_nodes = [256 * high + low for high, low in zip(high, low)]
        stacks, level = [()], 0
        path = []
        for pop, frame in zip(pops[1:], of_nodes):
            level = level + 1 - pop
            del path[level - 1 :]
            path.append(titles[frame])
            stacks.append(tuple(path))
        return stacks

    def rows(self):
        """The value of each row, by type, stack, labels, step, side and series."""
        labels, sets = self.header["labels"], self.header["labelSets"]
        numbers = self.varints("label_sets", sets * len(labels))
        label_sets = []
        for at in range(sets):
            of_set = numbers[at * len(labels) : (at + 1) * len(labels)]
            pairs = [(label["key"], label["values"][n - 1]) for label, n in zip(labels, of_set) if n]
            label_sets.append(tuple(sorted(pairs)))
        stacks, found = self.stacks(), {}
        for number, kind in enumerate(self.header["types"]):
            count, node = self.header["rows"][number], 0
            column = lambda name: self.varints(f"rows{number}_{name}", count)
            columns = [column(name) for name in ("nodes", "values", "sets", "times", "series")]
            sides = self.sections.get(f"rows{number}_sides", bytes(count))
            for step, value, labels_of, time, series, side in zip(*columns, sides):
                node += step
                key = (kind["name"], kind["unit"], stacks[node], label_sets[labels_of], time, side, series)
                assert key not in found, f"two rows of {key}"
                found[key] = value
        return found


# Quantities of which the page has a name of its own: sample type and unit, period type and unit.
NAMES = {
    ("samples", "count", "space", "bytes"): "alloc-samples",
    ("alloc_space", "bytes", "space", "bytes"): "alloc-space",
    ("alloc_objects", "count", "space", "bytes"): "alloc-objects",
    ("inuse_space", "bytes", "space", "bytes"): "live-space",
    ("inuse_objects", "count", "space", "bytes"): "live-objects",
    ("contentions", "count", "contentions", "count"): "lock-count",
    ("delay", "nanoseconds", "contentions", "count"): "lock-time",
    ("waits", "count", "waits", "count"): "wait-count",
    ("delay", "nanoseconds", "waits", "count"): "wait-time",
    ("alloc_space", "bytes", "malloc", "bytes"): "nativemem-space",
    ("alloc_objects", "count", "malloc", "bytes"): "nativemem-objects",
    ("inuse_space", "bytes", "malloc", "bytes"): "nativeleak-space",
    ("inuse_objects", "count", "malloc", "bytes"): "nativeleak-objects",
    ("calls", "count", "calls", "count"): "trace-count",
    ("latency", "nanoseconds", "calls", "count"): "trace-time",
    ("delay", "nanoseconds", "sleeps", "count"): "sleep-time",
    ("delay", "nanoseconds", "pinned", "count"): "pinned-time",
    ("delay", "nanoseconds", "socket_operations", "count"): "socket-time",
    ("io_space", "bytes", "socket_operations", "count"): "socket-bytes",
    ("delay", "nanoseconds", "file_operations", "count"): "file-time",
    ("io_space", "bytes", "file_operations", "count"): "file-bytes",
    ("tasks", "count", "tasks", "count"): "queue-count",
    ("delay", "nanoseconds", "tasks", "count"): "queue-time",
    ("events", "count", "events", "count"): "event-count",
    ("duration", "nanoseconds", "events", "count"): "event-time",
    ("delay", "nanoseconds", "loads", "count"): "class-load-time",
}


def quantity(strings, profile):
    """The name, unit and factor of a profile's values."""
    sample, period = profile.sample_type, profile.period_type
    types = tuple(strings[at] for at in (sample.type_strindex, sample.unit_strindex,
                                         period.type_strindex, period.unit_strindex))
    if types[:2] == ("samples", "count") and profile.period > 0 and types[2]:
        return NAMES.get(types, types[2]), types[3], profile.period
    return NAMES.get(types, types[0].replace("_", "-")), types[1], 1


def plain(strings, value):
    """The text of an attribute's value, as a label has it."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind == "string_value_strindex":
        return strings[value.string_value_strindex]
    if kind == "int_value":
        return str(value.int_value)
    if kind == "bool_value":
        return "true" if value.bool_value else "false"
    assert kind is None, f"a value of kind {kind} is not compared"
    return ""


class Tables:
    """The tables of one message."""

    def __init__(self, dictionary):
        self.of = dictionary
        self.strings = dictionary.string_table

    def attributes(self, indices):
        table = self.of.attribute_table
        return {self.strings[table[i].key_strindex]: plain(self.strings, table[i].value) for i in indices if i}

    def frames(self, location, with_lines):
        """Names and details of a location's frames, outermost first."""
        of = self.attributes(location.attribute_indices)
        found = []
        for line in location.lines:
            function = self.of.function_table[line.function_index]
            name = self.strings[function.name_strindex] or self.strings[function.system_name_strindex]
            file = self.strings[function.filename_strindex]
            number = line.line if with_lines else 0
            if file and number:
                detail = f"{file}:{number}"
            else:
                detail = file or (f"line {number}" if number else "")
            found.append((name or self.unnamed(location, of), detail))
        return found[::-1] or [(self.unnamed(location, of), "")]

    def unnamed(self, location, attributes):
        if "otlpprof.frame.remote" in attributes:
            return attributes["otlpprof.frame.remote"]
        if location.mapping_index:
            mapping = self.of.mapping_table[location.mapping_index]
            build_id = self.attributes(mapping.attribute_indices).get("process.executable.build_id.gnu")
            if build_id:
                return f"{build_id}.<remote>({location.address:#x})"
            file = self.strings[mapping.filename_strindex].rsplit("/", 1)[-1]
            if file:
                return f"[{file}+{location.address:#x}]"
        return f"{location.address:#x}" if location.address else "[no_name]"

    def stack(self, index, with_lines):
        locations = self.of.stack_table[index].location_indices
        frames = [self.frames(self.of.location_table[at], with_lines) for at in reversed(locations)]
        return tuple(frame for of_location in frames for frame in of_location)


def unix_ns(text):
    """The time of a text such as 2026-01-31T12:00:00Z."""
    return int(datetime.datetime.fromisoformat(text).timestamp()) * 10**9


class Filters:
    """The samples that a command selects."""

    def __init__(self, options):
        self.type = options.type
        pairs = options.where + ([f"thread.name={options.thread}"] if options.thread else [])
        self.attributes = [tuple(pair.split("=", 1)) for pair in pairs]
        self.frames, self.without = options.frame, options.without
        self.start = unix_ns(getattr(options, "from")) if getattr(options, "from") else 0
        self.end = unix_ns(options.to) if options.to else 1 << 64

    def has_labels(self, attributes):
        return all(pair in attributes for pair in self.attributes)

    def has_stack(self, stack):
        has = lambda expression: any(re.search(expression, name) for name, _ in stack)
        return all(map(has, self.frames)) and not any(map(has, self.without))

    def has_time(self, time):
        return self.start <= time < self.end


def parser():
    """The parser of the arguments that page and files have in common."""
    made = argparse.ArgumentParser()
    made.add_argument("page")
    made.add_argument("new", nargs="+")
    made.add_argument("--base", nargs="+", default=[])
    made.add_argument("--lines", action="store_true")
    for name in ("--where", "--frame", "--without"):
        made.add_argument(name, action="append", default=[])
    for name in ("--type", "--thread", "--from", "--to"):
        made.add_argument(name)
    return made


# The most values of a label that a page keeps.
MOST_VALUES = 2000


@functools.cache
def messages_of(file):
    """The messages of a file."""
    return list(decoded(open(file, "rb").read()))


def resource_attributes(tables, resource):
    """Key and text of each attribute of a resource, sorted."""
    return sorted((a.key or tables.strings[a.key_strindex], plain(tables.strings, a.value))
                  for a in resource.resource.attributes)


def differing(files):
    """The keys of the attributes that are not the same in all resources that have profiles."""
    found = []
    for message in (message for file in files for message in messages_of(file)):
        tables = Tables(message.dictionary)
        found += [dict(resource_attributes(tables, resource)) for resource in message.resource_profiles
                  if any(scope.profiles for scope in resource.scope_profiles)]
    keys = {key for attributes in found for key in attributes}
    return {key for key in keys if len({attributes.get(key, "") for attributes in found}) > 1}


def rows_of(files, side, header, options, resource_keys=frozenset()):
    """The rows that a page of these files must have: their values by type, unit, stack, labels, step and side.
    The states of snapshot types are apart: such rows by type, unit, process, step and side. Also the values of
    each key that labels have, on the page or not."""
    times, kept = header["times"], {label["key"] for label in header["labels"]}
    rows, states, filters = collections.Counter(), {}, Filters(options)
    seen = collections.defaultdict(set)

    def step_of(unix_ns):
        if times is None:
            return 0
        start_ns, step_ns = times["startUnixMs"] * 10**6, round(times["stepMs"] * 1e6)
        return min(max(unix_ns - start_ns, 0) // step_ns, times["count"] - 1)

    for file in files:
        for message in messages_of(file):
            tables = Tables(message.dictionary)
            for resource in message.resource_profiles:
                attributes = resource_attributes(tables, resource)
                process = json.dumps(attributes)
                of_resource = {key: value for key, value in attributes if key in resource_keys}
                for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                    name, unit, factor = quantity(tables.strings, profile)
                    if filters.type not in (None, name):
                        continue
                    of_profile = tables.attributes(profile.attribute_indices).items()
                    is_state = name.startswith(("live-", "nativeleak-", "inuse-"))
                    if is_state:
                        # A state is one moment, whatever times its samples have.
                        step_of_state = step_of(profile.time_unix_nano)
                        place = (name, unit, process, step_of_state, side)
                        known = states.get(place)
                        if known is None or known[0] < profile.time_unix_nano:
                            states[place] = known = (profile.time_unix_nano, collections.Counter())
                        if known[0] > profile.time_unix_nano:
                            continue
                    for sample in profile.samples:
                        values, at = list(sample.values), list(sample.timestamps_unix_nano)
                        at = at or [profile.time_unix_nano] * len(values)
                        values = values or [1] * len(at)
                        labels = tables.attributes(sample.attribute_indices)
                        stack = tables.stack(sample.stack_index, options.lines)
                        all_of = [*attributes, *of_profile, *labels.items()]
                        if not (filters.has_labels(all_of) and filters.has_stack(stack)):
                            continue
                        labels = of_resource | {key: value for key, value in labels.items() if value}
                        for key, value in labels.items():
                            if value:
                                seen[key].add(value)
                        labels = tuple(sorted((k, v) for k, v in labels.items() if k in kept and v))
                        for value, time in zip(values, at):
                            step = step_of_state if is_state else step_of(time)
                            key = (name, unit, stack, labels, step, side)
                            target = known[1] if is_state else rows
                            if value and filters.has_time(time):
                                target[key] += value * factor
    return rows, {place: of_state for place, (_, of_state) in states.items()}, seen


def without_series(states):
    """The rows of all states. Processes are numbered by an order of the page's own, so that states of
    different processes are compared without their numbers."""
    merged = collections.Counter()
    for of_state in states.values():
        merged.update(of_state)
    return merged


def expected_of(options, header):
    """The rows and states of both sides. The page must have every label that its rows have."""
    side, keys = (1 if header["sides"] == 2 else 0), differing(options.new) | differing(options.base)
    rows, states, seen = rows_of(options.new, side, header, options, keys)
    if options.base:
        of_base, base_states, base_seen = rows_of(options.base, 0, header, options, keys)
        rows.update(of_base)
        states.update(base_states)
        for key, values in base_seen.items():
            seen[key] |= values
    kept = {label["key"] for label in header["labels"]}
    missing = [key for key, values in seen.items() if key not in kept and len(values) <= MOST_VALUES]
    assert not missing, f"the page lacks the labels {missing}"
    return rows, states


def main(arguments):
    options = parser().parse_args(arguments)
    page = Page(open(options.page).read())
    expected, states = expected_of(options, page.header)
    expected = {(*key, 0): value for key, value in expected.items()}
    is_snapshot = {kind["name"] for kind in page.header["types"] if kind["snapshot"]}
    found, found_states = {}, collections.Counter()
    for key, value in page.rows().items():
        if key[0] in is_snapshot:
            # A row without a value stands for a state without samples.
            found_states.update({key[:-1]: value} if value else {})
        else:
            found[key] = value
    for expected_rows, found_rows in ((expected, found), (without_series(states), found_states)):
        for key in sorted(expected_rows.keys() | found_rows.keys(), key=repr):
            if expected_rows.get(key) != found_rows.get(key):
                print(f"{key}: {expected_rows.get(key)} in the files, {found_rows.get(key)} on the page")
                return 1
    print(json.dumps({"rows": len(found) + len(found_states), "nodes": page.header["nodes"],
                      "total": sum(found.values()) + sum(found_states.values())}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
