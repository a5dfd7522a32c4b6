// Values of each view, node by node, against the plain computation.

import assert from 'node:assert/strict';
import test from 'node:test';
import { exactly } from '../src/search.js';
import { samples, someFrames, TYPES, writerOf } from './support/generate.mjs';
import * as naive from './support/naive.mjs';
import { frameNumbers, modelOf, open, pathsOf, sorted } from './support/open.mjs';

const FRAMES = someFrames(40);
const TIMES = { startUnixMs: 1_700_000_000_000, stepMs: 10_000, count: 12 };
const LABELS = { 'thread.name': 5, endpoint: 4 };

/** A profile of random samples, with functions that translate frames in both directions. */
async function setUp(options = {}, header = {}) {
  const list = samples({
    count: 1200,
    types: 3,
    labels: LABELS,
    times: TIMES.count,
    series: 3,
    ...options,
  });
  const writer = writerOf(list, FRAMES, {
    types: TYPES,
    labels: Object.keys(LABELS),
    times: TIMES,
    ...header,
  });
  const profile = await open(writer);
  const numbers = frameNumbers(profile, FRAMES);
  const back = new Map(numbers.map((number, sample) => [number, sample]));
  return { list, profile, numbers, samplesOf: (frame) => back.get(frame) };
}

/** Labels of a plain selection as the state has them. */
function stateLabels(profile, labels) {
  return new Map(
    Object.entries(labels).map(([key, values]) => {
      const label = profile.labels.findIndex((candidate) => candidate.key === key);
      const number = (value) => (value === null ? 0 : profile.labels[label].values.indexOf(value) + 1);
      return [label, new Set(values.map(number))];
    }),
  );
}

const SELECTIONS = [
  {},
  { type: 1 },
  { type: 2 },
  { window: [3, 7] },
  { type: 2, window: [0, 5] },
  { labels: { endpoint: ['endpoint-1'] } },
  { labels: { endpoint: ['endpoint-0', null] } },
  { labels: { endpoint: ['endpoint-1', 'endpoint-2'], 'thread.name': ['thread.name-3'] }, window: [2, 11] },
  { type: 2, labels: { endpoint: ['endpoint-3'] }, window: [4, 9] },
];

for (const choice of SELECTIONS) {
  for (const sides of [1, 2]) {
    test(`each view of ${JSON.stringify(choice)}, ${sides} side(s), equals the plain sums`, async () => {
      const header = sides === 2 ? { sideNames: ['base', 'new'] } : {};
      const { list, profile, numbers, samplesOf } = await setUp({ sides, seed: 11 + sides }, header);
      const { type = 0, window = null, labels = {} } = choice;
      const chosen = naive.selected(list, { type, window, labels, isSnapshot: TYPES[type].snapshot });
      assert.ok(chosen.length > 3);
      for (const filters of [
        [],
        [{ keep: true, frame: 2 }],
        [
          { keep: false, frame: 1 },
          { keep: true, frame: 12 },
        ],
      ]) {
        const rest = naive.filtered(chosen, filters);
        const state = {
          type,
          window,
          labels: stateLabels(profile, labels),
          filters: filters.map(({ keep, frame }) => ({ keep, frame: numbers[frame] })),
        };
        const paths = (view, index = 0, isSelf = false) => {
          const model = modelOf(profile, { ...state, ...view });
          return sorted(pathsOf(model.complete(model.graphs()[index]), samplesOf, isSelf));
        };
        assert.deepEqual(paths({}), sorted(naive.topDown(rest)));
        assert.deepEqual(paths({}, 0, true), sorted(naive.selfValues(rest)));
        assert.deepEqual(paths({ view: 'inverted' }), sorted(naive.inverted(rest)));
        for (const frame of [0, 2, 12, 19]) {
          const sandwich = { view: 'sandwich', sandwich: numbers[frame] };
          assert.deepEqual(paths(sandwich, 0), sorted(naive.callers(rest, frame)));
          assert.deepEqual(paths(sandwich, 1), sorted(naive.callees(rest, frame)));
        }
        checkFunctions(modelOf(profile, state), rest, samplesOf);
        if (sides === 2) {
          assert.deepEqual(paths({ elided: true }), sorted(naive.elided(rest)));
        }
      }
    });
  }
}

function checkFunctions(model, list, samplesOf) {
  const expected = naive.functions(list);
  const sides = model.functions();
  for (let frame = 0; frame < model.profile.frames; frame++) {
    const own = samplesOf(frame);
    sides.forEach(({ self, total }, side) => {
      assert.equal(self[frame], expected.self.get(own)?.[side] ?? 0);
      assert.equal(total[frame], expected.total.get(own)?.[side] ?? 0);
    });
  }
}

test('a search counts nested matches once, and its towers are the matching samples', async () => {
  const { list, profile, samplesOf } = await setUp({ seed: 21 });
  const chosen = naive.selected(list, { type: 0 });
  for (const text of ['run', 'Worker|Mapper', '^java\\.', 'g1par', 'G1Par', 'nothing', '.', 'handle$']) {
    const model = modelOf(profile, { search: text, onlyMatches: true });
    const expected = naive.matching(chosen, FRAMES, new RegExp(text, /[A-Z]/.test(text) ? '' : 'i'));
    assert.equal(model.matchSum().sum, expected, text);
    const graph = model.graphs()[0];
    assert.equal(graph.sums[0].at(-1), expected, text);
    assert.equal(
      graph.whole,
      chosen.reduce((sum, { value }) => sum + value, 0),
    );
    let sum = 0;
    for (const node of model.matchNodes(graph)) {
      assert.ok(model.matches[graph.tree.frame[node]]);
      sum += graph.sums[0][graph.tree.end[node]] - graph.sums[0][node];
    }
    assert.equal(sum, expected);
    assert.equal(model.matchNodes(graph).length, model.matchSum().number);
    assert.equal(samplesOf(graph.tree.frame[1]) >= 0, true);
  }
});

test('an expression that is not valid is reported, and exact names match themselves alone', async () => {
  const { profile } = await setUp();
  assert.match(modelOf(profile, { search: '(' }).searchError, /group/i);
  assert.equal(modelOf(profile, { search: '(' }).matchSum(), null);
  for (let frame = 0; frame < profile.frames; frame++) {
    const { matches } = modelOf(profile, { search: exactly(profile.name(frame)) });
    assert.deepEqual(
      [...matches.keys()].filter((other) => matches[other]),
      [frame],
    );
  }
});

test('sums of labels follow the choice of the other labels, sums of steps the choice of all', async () => {
  const { list, profile } = await setUp({ seed: 31 });
  const labels = { endpoint: ['endpoint-1'] };
  const model = modelOf(profile, { labels: stateLabels(profile, labels), window: [2, 9] });
  for (const [label, { key, values }] of profile.labels.entries()) {
    const others = Object.fromEntries(Object.entries(labels).filter(([other]) => other !== key));
    const rows = naive.selected(list, { labels: others, window: [2, 9] });
    const expected = [null, ...values].map((value) =>
      rows.filter((row) => (row.labels[key] ?? null) === value).reduce((sum, row) => sum + row.value, 0),
    );
    assert.deepEqual([...model.labelSums(label)], expected);
  }
  const steps = Array.from({ length: TIMES.count }, (_, step) =>
    naive.selected(list, { labels, window: [step, step + 1] }).reduce((sum, { value }) => sum + value, 0),
  );
  assert.deepEqual([...model.selection.stepSums], steps);
});

test('boxes of lazy trees that are wide enough are expanded, others after a zoom', async () => {
  const { list, profile, samplesOf } = await setUp({ seed: 51, count: 3000 });
  const expected = naive.inverted(naive.selected(list, { type: 0 }));
  const whole = naive.selected(list, { type: 0 }).reduce((sum, { value }) => sum + value, 0);
  const pixels = 100;
  const model = modelOf(profile, { view: 'inverted' }, pixels);
  const [graph] = model.graphs();
  const found = pathsOf(graph, samplesOf);
  assert.ok(found.size < expected.size / 2);
  for (const [path, [value]] of expected) {
    if (value >= (0.5 * whole) / pixels) {
      assert.deepEqual(found.get(path), [value, 0]);
    }
  }
  for (const [path, values] of found) {
    assert.deepEqual(values, expected.get(path));
  }
  const zoom = [...expected].filter(
    ([path, [value]]) => path.split(' ').length === 3 && found.has(path) && value > 0,
  )[0];
  let node = 0;
  for (const frame of zoom[0].split(' ')) {
    for (let child = node + 1; ; child = graph.tree.end[child]) {
      if (samplesOf(graph.tree.frame[child]) === Number(frame)) {
        node = child;
        break;
      }
    }
  }
  model.zoomInto(graph, node);
  const after = pathsOf(graph, samplesOf);
  for (const [path, [value]] of expected) {
    if (path.startsWith(zoom[0]) && value >= (0.5 * zoom[1][0]) / pixels) {
      assert.deepEqual(after.get(path), [value, 0]);
    }
  }
});

// Regression: levels were numbers of 16 bits, so that deeper stacks folded over.
test('a stack is as deep as the readers of files allow', async () => {
  for (const depth of [65534, 65535, 65536, 65537, 2 ** 18]) {
    const frames = someFrames(3);
    const deep = [...Array(depth - 1).fill(0), 1];
    const own = { type: 0, labels: {}, time: 0, side: 0, series: 0 };
    const list = [
      { stack: deep, value: 7, ...own },
      { stack: [0, 2], value: 93, ...own },
    ];
    const profile = await open(writerOf(list, frames));
    const [, leaf] = frameNumbers(profile, frames);
    assert.equal(profile.tree.depth, depth + 1);
    for (const view of ['main', 'inverted']) {
      const [{ tree, sums }] = modelOf(profile, { view }, 1e9).graphs();
      const node = tree.frame.indexOf(leaf);
      assert.equal(sums[0][tree.end[node]] - sums[0][node], 7, `${view}, ${depth}`);
      assert.equal(tree.level[node], view === 'main' ? depth : 1);
    }
  }
});
