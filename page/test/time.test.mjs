// Time order of a thread, and the layout of the heat map.

import assert from 'node:assert/strict';
import test from 'node:test';
import { HeatLayout, ROWS_MOST, stepsOfCell, stepsOfColumn } from '../src/heatlayout.js';
import { sumsOfParts } from '../src/timesums.js';
import { samples, someFrames, TYPES, writerOf } from './support/generate.mjs';
import * as naive from './support/naive.mjs';
import { frameNumbers, modelOf, open, sorted } from './support/open.mjs';
import { ProfileWriter } from './support/writer.mjs';

const FRAMES = someFrames(40);
const TIMES = { startUnixMs: 1_700_000_000_000, stepMs: 10_000, count: 12 };

test('time order has the samples of a thread step by step', async () => {
  const list = samples({ seed: 41, count: 1200, labels: { 'thread.name': 5 }, times: TIMES.count });
  const profile = await open(writerOf(list, FRAMES, { labels: ['thread.name'], times: TIMES }));
  const numbers = frameNumbers(profile, FRAMES);
  const thread = profile.labels[0].values.indexOf('thread.name-2') + 1;
  for (const window of [null, [3, 8], [5, 6]]) {
    const model = modelOf(profile, { view: 'order', thread, window });
    const [graph] = model.graphs();
    const rows = naive.selected(list, { labels: { 'thread.name': ['thread.name-2'] }, window });
    const sum = rows.reduce((total, { value }) => total + value, 0);
    assert.equal(graph.whole, sum);
    assert.equal(graph.sums[0].at(-1), sum);
    const [from, to] = window ?? [0, TIMES.count];
    assert.ok(Math.abs(graph.widths.at(-1) - (to - from)) < 1e-9);
    checkSteps(graph, rows, (frame) => numbers.indexOf(frame));
    checkMerged(graph);
  }
});

/** The value of each stack in each step. Steps follow each other on the scale of the values. */
function checkSteps(graph, rows, samplesOf) {
  const steps = [...new Set(rows.map(({ time }) => time))].sort((left, right) => left - right);
  const ends = new Map();
  let end = 0;
  for (const step of steps) {
    end += rows.filter(({ time }) => time === step).reduce((sum, { value }) => sum + value, 0);
    ends.set(step, end);
  }
  const found = new Map();
  const { tree } = graph;
  const [sums] = graph.sums;
  for (let node = 1; node < tree.count; node++) {
    const frames = tree.path(node).map((at) => tree.frame[at]);
    const path = frames
      .filter((frame) => frame >= 0)
      .map(samplesOf)
      .join(' ');
    let begin = 0;
    for (const [step, until] of ends) {
      const part = Math.min(sums[node + 1], until) - Math.max(sums[node], begin);
      if (part > 0) {
        const key = `${step}: ${path}`;
        found.set(key, (found.get(key) ?? 0) + part);
      }
      begin = until;
    }
  }
  const expected = new Map();
  for (const { time, stack, value } of rows) {
    const key = `${time}: ${stack.join(' ')}`;
    expected.set(key, (expected.get(key) ?? 0) + value);
  }
  assert.deepEqual(sorted(found), sorted(expected));
}

/** No box follows directly on one of the same function with the same caller. */
function checkMerged({ tree }) {
  for (let node = 0; node < tree.count; node++) {
    let before = null;
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
      assert.notEqual(tree.frame[child], before);
      before = tree.frame[child];
    }
  }
}

/** The boxes of the time order of a small profile: `[level, name, begin, end]` in steps. */
async function boxesOf(list, times, type = TYPES[0]) {
  const writer = new ProfileWriter({ types: [type], times });
  for (const [stack, value, time] of list) {
    writer.add(
      stack.split(' ').map((name) => writer.frame(name)),
      value,
      { time },
    );
  }
  const profile = await open(writer);
  const [{ tree, widths }] = modelOf(profile, { view: 'order' }).graphs();
  const boxes = [];
  for (let node = 1; node < tree.count; node++) {
    if (tree.frame[node] >= 0) {
      const round = (position) => Math.round(position * 1e6) / 1e6;
      const [begin, end] = [widths[node], widths[tree.end[node]]].map(round);
      boxes.push([tree.level[node], profile.name(tree.frame[node]), begin, end]);
    }
  }
  return boxes;
}

test('samples of time last that time, neighbours share their boxes, and idle time stays empty', async () => {
  const ms = 1_000_000;
  const times = { startUnixMs: 0, stepMs: 10, count: 24 };
  const list = [
    ['a b', 10 * ms, 1],
    ['a b', 10 * ms, 2],
    ['a c', 10 * ms, 3],
    ['a b', 10 * ms, 10],
    // A gap of one sample is closed.
    ['a b', 10 * ms, 12],
    // The function itself, behind and before a callee.
    ['a', 10 * ms, 13],
    ['a b', 10 * ms, 14],
    // More than the step has room for.
    ['a', 20 * ms, 20],
    ['a', 20 * ms, 21],
    ['d', 10 * ms, 22],
  ];
  assert.deepEqual(await boxesOf(list, times), [
    [1, 'a', 1, 4],
    [2, 'b', 1, 3],
    [2, 'c', 3, 4],
    [1, 'a', 10, 15],
    [2, 'b', 10, 13],
    [2, 'b', 14, 15],
    [1, 'a', 20, 22],
    [1, 'd', 22, 24],
  ]);
});

test('within a long step, widths are the values', async () => {
  const list = [
    ['a', 2e9, 0],
    ['b', 3e9, 0],
    ['b', 1e9, 1],
  ];
  const times = { startUnixMs: 0, stepMs: 10_000, count: 2 };
  assert.deepEqual(await boxesOf(list, times), [
    [1, 'a', 0, 0.2],
    [1, 'b', 0.2, 0.5],
    [1, 'b', 1, 1.1],
  ]);
});

test('samples of other units last until the next one, as far as they are mostly apart', async () => {
  const list = [
    ['a', 100, 0],
    ['b', 5, 2],
    ['c', 7, 4],
    ['d', 900, 20],
  ];
  assert.deepEqual(await boxesOf(list, { startUnixMs: 0, stepMs: 10, count: 40 }, TYPES[1]), [
    [1, 'a', 0, 2],
    [1, 'b', 2, 4],
    [1, 'c', 4, 6],
    [1, 'd', 20, 22],
  ]);
});

test('columns of the heat map are well-known lengths of time', () => {
  assert.equal(stepsOfColumn(10_000, 360, 100), 6);
  assert.equal(stepsOfColumn(1000, 600, 100), 10);
  assert.equal(stepsOfColumn(60_000, 600, 100), 10);
  for (const [stepMs, count, most] of [
    [1000, 1, 100],
    [7000, 50, 10],
    [1000, 100_000, 90],
    [10, 3600, 110],
  ]) {
    assert.ok(Math.ceil(count / stepsOfColumn(stepMs, count, most)) <= most);
  }
  // 20 ms of a second, a second of a minute, a minute of an hour.
  assert.deepEqual([100, 600, 3600, 6, 1, 61].map(stepsOfCell), [2, 10, 60, 1, 1, 2]);
});

test('every step is in the cell whose window has the step', () => {
  for (const [stepMs, count, most] of [
    [10_000, 24, 300],
    [10, 36_000, 300],
    [7, 5000, 90],
    [163, 61, 1],
    [1000, 1, 100],
    [10_000, 100_000, 90],
  ]) {
    const layout = new HeatLayout({ stepMs, count }, most);
    assert.ok(layout.rows <= ROWS_MOST && layout.columns <= most);
    let reached = 0;
    for (let cell = 0; cell < layout.cells; cell++) {
      const [from, to] = layout.windowOf(cell, cell);
      assert.equal(from, reached);
      assert.ok(to > from && to <= count);
      for (let step = from; step < to; step++) {
        assert.equal(layout.cellOf(step), cell);
      }
      assert.deepEqual(layout.windowOf(cell, 0), [0, to]);
      reached = to;
    }
    assert.equal(reached, count);
  }
});

test('parts of time add up samples, and have the last of states', () => {
  const partOf = (step) => Math.floor(step / 2);
  assert.deepEqual([...sumsOfParts([1, 2, 3, 0, 5], 3, partOf, false)], [3, 3, 5]);
  assert.deepEqual([...sumsOfParts([1, 2, 3, 0, 5], 3, partOf, true)], [2, 3, 5]);
});
