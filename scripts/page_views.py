"""Compares the views of a flame graph page, as a browser computes them, with the OTLP files of the page.

    page_views.py PAGE NEW... [--base BASE...] [--mutate MUTATION]

Opens the page in headless Chromium (page/values.mjs) and asks for its values under no filter, under labels,
windows of time, focused and removed functions and searches; top down, inverted, as sandwich, and of the base
side alone. Computes the values of each node from the OTLP files, sample by sample, without code of otlpprof
or of the page. Also compares the width of 1,000 random boxes with their shares.

Prints one line of JSON: how many values were compared in each kind of view. Exits with 1 if any differs; then
prints how many differ in each kind, and the first difference.

A MUTATION is made to a copy of the page first. The comparison must then fail:

    lost       the largest value is 0
    exchanged  base and new are exchanged
    relabelled two rows have each other's labels
    delayed    two rows have each other's times
    renamed    two nodes have each other's frames
"""

import base64
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zlib

from page_truth import Page, expected_of, parser

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOXES = 1000


class Sample:
    """A row of the files."""

    def __init__(self, stack, labels, step, side, value, process):
        self.stack, self.labels, self.step, self.side, self.value = stack, dict(labels), step, side, value
        self.process = process

    def passes(self, labels):
        return all(self.labels.get(key) in values for key, values in labels.items())


class Keys:
    """Numbers of paths of frames. Equal paths have equal numbers; the empty path has 0."""

    def __init__(self):
        self.numbers, self.paths = {}, [()]

    def child(self, key, frame):
        number = self.numbers.get((key, frame))
        if number is None:
            number = self.numbers[key, frame] = len(self.paths)
            self.paths.append((key, frame))
        return number

    def text(self, key):
        names = []
        while key:
            key, frame = self.paths[key]
            names.append(frame[0])
        return " > ".join(reversed(names)) or "all"


class Files:
    """The samples of the files, by type."""

    def __init__(self, page, options):
        self.header = page.header
        self.sides = page.header["sides"]
        self.keys = Keys()
        rows, states = expected_of(options, page.header)
        self.of_type = collections.defaultdict(list)
        for (name, unit, stack, labels, step, side), value in rows.items():
            self.of_type[name, unit].append(Sample(stack, labels, step, side, value, None))
        # The steps at which each process has a state, also one without samples.
        self.states = collections.defaultdict(set)
        for (name, unit, process, step, side), of_state in states.items():
            self.states[name, unit, process, side].add(step)
            for (*_, stack, labels, _, _), value in of_state.items():
                self.of_type[name, unit].append(Sample(stack, labels, step, side, value, process))

    def in_window(self, kind, window):
        """The samples of a type in a window. Of states: the last ones of each process."""
        samples = self.of_type[kind["name"], kind["unit"]]
        if window is not None:
            samples = [sample for sample in samples if window[0] <= sample.step < window[1]]
        if not kind["snapshot"]:
            return samples
        last = {}
        for (name, unit, process, side), steps in self.states.items():
            inside = [step for step in steps if window is None or window[0] <= step < window[1]]
            if (name, unit) == (kind["name"], kind["unit"]) and inside:
                last[process, side] = max(inside)
        return [sample for sample in samples if sample.step == last.get((sample.process, sample.side))]

    def sums(self, paths):
        """Totals and self values of each node of the paths: `(frames, side, value)`."""
        found = collections.defaultdict(lambda: [0] * (2 * self.sides))
        for frames, side, value in paths:
            key = 0
            found[key][side] += value
            for frame in frames:
                key = self.keys.child(key, frame)
                found[key][side] += value
            found[key][self.sides + side] += value
        return {key: values for key, values in found.items() if any(values)}


class View:
    """A view of the page: what is chosen, and how it is drawn."""

    def __init__(self, kind, type_number, labels=None, window=None, filters=(), view="main", frame=None,
                 search="", only=False, elided=False):
        self.kind, self.type, self.labels, self.window = kind, type_number, labels or {}, window
        self.filters, self.view, self.frame = filters, view, frame
        self.search, self.only, self.elided = search, only, elided

    def request(self):
        """The request for page/values.mjs: the state, and the questions."""
        state = {
            "type": self.type, "labels": self.labels, "window": self.window, "zoom": [],
            "filters": [{"keep": keep, "name": frame} for keep, frame in self.filters],
            "view": self.view, "search": self.search, "onlyMatches": self.only, "elided": self.elided,
        }
        if self.frame:
            state["sandwich"] = self.frame
        graphs = 2 if self.view == "sandwich" else 1
        return {"set": state, "graphs": graphs, "boxes": BOXES if self.kind == "whole" else 0}

    def chosen(self, files, labels=None):
        """The samples under labels, window and filters."""
        kind = files.header["types"][self.type]
        samples = files.in_window(kind, self.window)
        return [sample for sample in samples if sample.passes(self.labels if labels is None else labels)]

    def filtered(self, files):
        samples = self.chosen(files)
        for keep, frame in self.filters:
            samples = [sample for sample in samples if (tuple(frame) in sample.stack) == keep]
        return samples

    def matches(self, sample):
        flags = 0 if re.search(r"[A-Z]", self.search) else re.IGNORECASE
        return any(re.search(self.search, name, flags) for name, _ in sample.stack)

    def expected(self, files):
        """The values of each graph."""
        samples = self.filtered(files)
        if self.elided:
            samples = without_new(files, samples)
        if self.only:
            samples = [sample for sample in samples if self.matches(sample)]
        if self.view == "inverted":
            paths = [(s.stack[::-1], s.side, s.value) for s in samples if s.stack]
            return [files.sums(paths)]
        if self.view == "sandwich":
            callers, callees = [], []
            for sample in samples:
                if self.frame in sample.stack:
                    at = sample.stack.index(self.frame)
                    callers.append((sample.stack[:at][::-1], sample.side, sample.value))
                    callees.append((sample.stack[at + 1 :], sample.side, sample.value))
            return [files.sums(callers), files.sums(callees)]
        return [files.sums((s.stack, s.side, s.value) for s in samples)]


def without_new(files, samples):
    """The samples of the base side in nodes that the new side lacks."""
    on_new = {s.stack[:length] for s in samples if s.side == 1 for length in range(len(s.stack) + 1)}
    return [sample for sample in samples if sample.side == 0 and sample.stack not in on_new]


def views_of(files):
    """The views that are compared: for each type, about thirty."""
    header, chance = files.header, random.Random(27)
    for number, kind in enumerate(header["types"]):
        samples = [sample for sample in files.in_window(kind, None) if sample.stack]
        if not samples:
            continue
        of = lambda name, **choice: View(name, number, **choice)
        yield of("whole")
        yield of("inverted", view="inverted")
        hottest = max(samples, key=lambda sample: (sample.value, sample.stack))
        frames = {hottest.stack[-1], hottest.stack[len(hottest.stack) // 2], hottest.stack[0]}
        some = sorted({frame for sample in samples for frame in sample.stack})
        frames.update(chance.sample(some, min(3, len(some))))
        frames = sorted(frames)
        leaf = hottest.stack[-1]
        for frame in frames:
            yield of("sandwich", view="sandwich", frame=frame)
            yield of("focus", filters=[(True, frame)])
            yield of("remove", filters=[(False, frame)])
        yield of("focus", filters=[(True, hottest.stack[0]), (False, frames[0])], view="inverted")
        for key in sorted({key for sample in samples for key in sample.labels}):
            of_key = collections.Counter()
            for sample in samples:
                of_key[sample.labels.get(key)] += sample.value
            names = [name for name, _ in of_key.most_common(2)] + [hottest.labels.get(key)]
            for name in dict.fromkeys(names):
                yield of("label", labels={key: [name]})
            yield of("label", labels={key: list(dict.fromkeys(names))}, view="inverted")
            yield of("label", labels={key: [hottest.labels.get(key)]}, filters=[(True, leaf)])
        word = max(re.findall(r"\w+", leaf[0]), key=len, default=".")
        for search in (word, word.lower(), "a|e"):
            yield of("search", search=search)
            yield of("search", search=search, only=True)
        if header["times"]:
            count, step = header["times"]["count"], hottest.step
            labels = {key: [value] for key, value in list(hottest.labels.items())[:1]}
            for window in [(step, step + 1), (0, max(1, count // 2)), (count // 3, count // 3 * 2 + 1)]:
                yield of("window", window=list(window))
                yield of("window", window=list(window), view="inverted")
            near = [max(0, step - count // 10), min(count, step + count // 10 + 1)]
            yield of("window", window=near, labels=labels, filters=[(False, frames[0])])
            yield of("window", window=near, labels=labels, view="sandwich", frame=leaf)
        if files.sides == 2:
            yield of("elided", elided=True)
            yield of("elided", elided=True, view="inverted")


class Comparison:
    """The numbers of compared and of different values, by kind of view."""

    def __init__(self, files):
        self.files = files
        self.compared, self.different = collections.Counter(), collections.Counter()
        self.first = None

    def equal(self, kind, what, expected, found):
        self.compared[kind] += 1
        if expected != found:
            self.different[kind] += 1
            self.first = self.first or f"{kind}: {what}: {expected} in the files, {found} on the page"

    def maps(self, kind, text, expected, found):
        for key in expected.keys() | found.keys():
            self.equal(kind, text(key), expected.get(key), found.get(key))

    def nodes(self, view, index, expected, nodes):
        """Compares a graph. Self values have a meaning in a top-down graph alone."""
        kind = view.kind if view.view != "sandwich" else ("callers", "callees")[index]
        sides = self.files.sides
        values = 2 * sides if view.view == "main" else sides
        cut = lambda sums: {key: of[:values] for key, of in sums.items()}
        self.maps(kind, self.files.keys.text, cut(expected), cut(nodes))

    def view(self, view, answer, titles):
        expected = view.expected(self.files)
        for index, flat in enumerate(answer["graphs"]):
            nodes, keys = self.page_nodes(flat, titles)
            self.nodes(view, index, expected[index], nodes)
            if index == 0 and "boxes" in answer:
                self.boxes(answer, keys, expected[0])
        if view.view == "main" and not view.only and not view.elided:
            self.functions(view, answer, titles)
            self.times(view, answer)
            self.labels(view, answer)
            self.matching(view, answer)

    def page_nodes(self, flat, titles):
        """The values of the nodes that have any, by key; and the key of each node."""
        sides, width = self.files.sides, 2 + 2 * self.files.sides
        keys, found = [], collections.defaultdict(lambda: [0] * (2 * sides))
        for at in range(0, len(flat), width):
            title, parent, *values = flat[at : at + width]
            key = 0 if parent < 0 else self.files.keys.child(keys[parent], titles[title])
            keys.append(key)
            if any(values):
                found[key] = [old + new for old, new in zip(found[key], values)]
        return dict(found), keys

    def boxes(self, answer, keys, expected):
        whole = expected[0][self.files.sides - 1]
        for node, width, hit in answer["boxes"]:
            share = expected.get(keys[node], [0, 0])[self.files.sides - 1] / whole
            is_right = hit == node and abs(width - share * answer["width"]) <= 1
            text = f"box of {self.files.keys.text(keys[node])}: {width} of {answer['width']}, hit {hit}"
            self.equal("boxes", text, True, is_right)

    def functions(self, view, answer, titles):
        sides = self.files.sides
        expected = collections.defaultdict(lambda: [0] * (2 * sides))
        for sample in view.filtered(self.files):
            if sample.stack:
                expected[sample.stack[-1]][sample.side] += sample.value
            for frame in set(sample.stack):
                expected[frame][sides + sample.side] += sample.value
        found = collections.defaultdict(lambda: [0] * (2 * sides))
        for title, *values in answer["functions"]:
            found[titles[title]] = [old + new for old, new in zip(found[titles[title]], values)]
        self.maps("functions", str, expected, found)

    def times(self, view, answer):
        """Sums of steps follow the labels, not the window."""
        kind, expected = self.files.header["types"][view.type], collections.Counter()
        for sample in self.files.of_type[kind["name"], kind["unit"]]:
            if sample.passes(view.labels):
                expected[sample.step] += sample.value
        found = {step: value for step, value in enumerate(answer["steps"]) if value}
        self.maps("steps", str, expected, found)

    def labels(self, view, answer):
        """Sums of a label's values follow the choice of the other labels."""
        for key, sums in answer["labels"].items():
            others = {other: values for other, values in view.labels.items() if other != key}
            expected = collections.Counter()
            for sample in view.chosen(self.files, others):
                expected[sample.labels.get(key, "")] += sample.value
            self.maps("sums of labels", str, expected, {name: value for name, value in sums if value})

    def matching(self, view, answer):
        if not view.search:
            return
        samples = [sample for sample in view.filtered(self.files) if sample.side == self.files.sides - 1]
        share = sum(sample.value for sample in samples if view.matches(sample))
        whole = sum(sample.value for sample in samples)
        found = answer["matches"]["sum"] / answer["matches"]["whole"] if whole else 0
        self.equal("matches", view.search, round(share / whole, 9) if whole else 0, round(found, 9))


def answers_of(page, views):
    """The page's answers, its titles, and the requests and errors of the browser."""
    requests = json.dumps([view.request() for view in views])
    command = [ROOT / "scripts/page.sh", "node", ROOT / "page/values.mjs", page]
    ran = subprocess.run(command, input=requests, capture_output=True, text=True)
    if ran.returncode != 0:
        print(ran.stderr, file=sys.stderr)
        sys.exit(2)
    *answers, last = map(json.loads, ran.stdout.splitlines())
    assert len(answers) == len(views), (len(answers), len(views))
    return answers, [tuple(title) for title in last["titles"]], last


class Mutable:
    """The data of a page, of which numbers are changed in place."""

    def __init__(self, html):
        parts = re.fullmatch(r'(.*id="profile">)([^<]*)(</script>.*)', html, re.S)
        self.head, text, self.tail = parts.groups()
        self.data = bytearray(zlib.decompress(base64.b64decode(text)))
        self.start = 9 + int.from_bytes(self.data[5:9], "little")
        self.header = json.loads(self.data[9 : self.start])

    def places(self, section):
        """The first byte and the end of each number of a section."""
        offset, length = self.header["sections"][section]
        found, first = [], self.start + offset
        for at in range(first, first + length):
            if self.data[at] < 0x80:
                found.append((first, at + 1))
                first = at + 1
        return found

    def number(self, place):
        digits = self.data[place[0] : place[1]]
        return sum((byte & 0x7F) << (7 * at) for at, byte in enumerate(digits))

    def lose(self):
        largest = max(self.places("rows0_values"), key=self.number)
        for at in range(*largest):
            self.data[at] &= 0x80

    def exchange_sides(self):
        for section, (offset, length) in self.header["sections"].items():
            if section.endswith("_sides"):
                for at in range(self.start + offset, self.start + offset + length):
                    self.data[at] = 1 - self.data[at]

    def exchange(self, section):
        """Exchanges the first number with the first other one of the same length."""
        places = self.places(section)
        for other in places:
            one = next(place for place in places if place[1] - place[0] == other[1] - other[0])
            if self.data[slice(*one)] != self.data[slice(*other)]:
                self.data[slice(*one)], self.data[slice(*other)] = \
                    self.data[slice(*other)], self.data[slice(*one)]
                return
        raise SystemExit(f"{section} has no two different numbers")

    def exchange_frames(self):
        offset, length = self.header["sections"]["node_frames_low"]
        at = self.start + offset
        other = next(place for place in range(at, at + length) if self.data[place] != self.data[at])
        self.data[at], self.data[other] = self.data[other], self.data[at]

    def html(self):
        return self.head + base64.b64encode(zlib.compress(self.data)).decode() + self.tail


MUTATIONS = {
    "lost": Mutable.lose,
    "exchanged": Mutable.exchange_sides,
    "relabelled": lambda page: page.exchange("rows0_sets"),
    "delayed": lambda page: page.exchange("rows0_times"),
    "renamed": Mutable.exchange_frames,
}


def main(arguments):
    known = parser()
    known.add_argument("--mutate", choices=MUTATIONS)
    options = known.parse_args(arguments)
    html = open(options.page).read()
    files = Files(Page(html), options)
    views = list(views_of(files))
    with tempfile.NamedTemporaryFile("w", suffix=".html") as page:
        if options.mutate:
            mutable = Mutable(html)
            MUTATIONS[options.mutate](mutable)
            html = mutable.html()
        page.write(html)
        page.flush()
        answers, titles, browser = answers_of(page.name, views)
    comparison = Comparison(files)
    comparison.equal("browser", "requests besides the page", [], browser["requests"])
    comparison.equal("browser", "errors", [], browser["errors"])
    for view, answer in zip(views, answers):
        comparison.view(view, answer, titles)
    if comparison.different:
        print(json.dumps({"different": comparison.different, "first": comparison.first}))
        return 1
    print(json.dumps({"views": len(views), "compared": comparison.compared}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
