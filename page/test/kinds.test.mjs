// The kinds of code of a page's samples, against sums of plain samples one by one.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { kindShares } from '../src/kinds.js';
import { Browser } from './support/browser.mjs';
import { samples, someFrames, TYPES, writerOf } from './support/generate.mjs';
import * as naive from './support/naive.mjs';
import { frameNumbers, modelOf, open } from './support/open.mjs';
import { withPage } from './support/opened.mjs';

const kindsLine = (...sums) => kindShares(...sums).join(', ');
const FRAMES = someFrames(40);
const NAMES = ['quiet', 'program', 'library', 'machine'];
/** Code 0 works for its callers. Code 2 keeps callers of code 1. */
const CALLED_BY = [
  [0, 1, 2, 3],
  [1, 1, 1, 3],
  [2, 1, 2, 3],
  [3, 1, 2, 3],
];
/** The samples of threads of role 1 are of the machine, unless they are of the program. */
const OF_ROLES = [
  [0, 1, 2, 3],
  [3, 1, 3, 3],
];

const codeOf = ({ kind, name }) => (kind === 0 ? 1 + (name.length % 2) : kind === 4 ? 0 : 3);
const roleOf = (labels) => (labels['thread.name']?.endsWith('-2') ? 1 : 0);

/** The kind of a sample. */
function kindOf({ stack, labels }) {
  const code = stack.reduce((callers, frame) => CALLED_BY[callers][codeOf(FRAMES[frame])], 0);
  return NAMES[OF_ROLES[roleOf(labels)][code]];
}

/** The sums of samples by kind, for each side. */
function sumsOf(list, sides) {
  const sums = Array.from({ length: sides }, () => Object.fromEntries(NAMES.map((name) => [name, 0])));
  for (const sample of list) {
    sums[sample.side][kindOf(sample)] += sample.value;
  }
  return sums;
}

const LIST = samples({
  seed: 91,
  count: 1500,
  times: 12,
  labels: { 'thread.name': 5, endpoint: 3 },
  types: 3,
  series: 2,
});

function written(list, options = {}) {
  return writerOf(list, FRAMES, {
    types: TYPES,
    labels: ['thread.name', 'endpoint'],
    kinds: { rules: { names: NAMES, calledBy: CALLED_BY, ofRoles: OF_ROLES }, codeOf, roleOf },
    ...options,
  });
}

const byName = (sums) => sums.map((of) => Object.fromEntries(NAMES.map((name, at) => [name, of[at]])));

test('the sums follow type, labels, window, focus and removal', async () => {
  const profile = await open(written(LIST, { times: { startUnixMs: 0, stepMs: 1000, count: 12 } }));
  const numbers = frameNumbers(profile, FRAMES);
  for (const { type, labels = {}, window = null, filters = [] } of [
    { type: 0 },
    { type: 1, window: [3, 9] },
    { type: 2 },
    { type: 2, window: [2, 7], labels: { endpoint: ['endpoint-1', null] } },
    { type: 0, labels: { 'thread.name': ['thread.name-2'] } },
    { type: 0, filters: [{ keep: true, frame: 1 }] },
    { type: 1, window: [0, 6], filters: [{ keep: false, frame: 2 }], labels: { endpoint: ['endpoint-0'] } },
  ]) {
    const chosen = Object.entries(labels).map(([key, values]) => {
      const label = profile.labels.findIndex((candidate) => candidate.key === key);
      return [label, new Set(values.map((value) => profile.labels[label].values.indexOf(value) + 1))];
    });
    const own = filters.map(({ keep, frame }) => ({ keep, frame: numbers[frame] }));
    const model = modelOf(profile, { type, window, labels: new Map(chosen), filters: own });
    const selected = naive.selected(LIST, { type, labels, window, isSnapshot: TYPES[type].snapshot });
    const expected = sumsOf(naive.filtered(selected, filters), 1);
    assert.deepEqual(byName(model.kindSums()), expected);
    model.update({ ...model.state, threads: true }, 1000);
    assert.deepEqual(byName(model.kindSums()), expected);
    const sum = Object.values(expected[0]).reduce((left, right) => left + right, 0);
    assert.ok(sum > 0);
    assert.equal(sum, model.totals[0]);
  }
});

test('a comparison has the sums of both sides, and another profile than a JVM\'s has none', async () => {
  const list = samples({ seed: 92, count: 400, sides: 2, labels: { 'thread.name': 5 } });
  const profile = await open(written(list, { sideNames: ['base', 'new'] }));
  assert.deepEqual(byName(modelOf(profile).kindSums()), sumsOf(list, 2));
  const other = await open(writerOf(list, FRAMES, { labels: ['thread.name'] }));
  assert.equal(modelOf(other).kindSums(), null);
  assert.deepEqual(modelOf(other).kindShares(), []);
});

test('the line leaves out kinds that would be zero, and rounds as the command does', () => {
  assert.equal(kindsLine(NAMES, [0, 9500, 499, 1], 10_000), 'program 95.0 %, library 5.0 %');
  assert.equal(kindsLine(NAMES, [1, 9, 6, 0], 16), 'quiet 6.2 %, program 56.2 %, library 37.5 %');
  assert.equal(kindsLine(NAMES, [0, 3, 397, 0], 400), 'program 0.8 %, library 99.2 %');
  assert.equal(kindsLine(NAMES, [0, 0, 0, 0], 0), '');
});

let browser;

before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

test('the page begins with the line, which follows the choice of labels', async () => {
  const line = (page) => page.$eval('.kinds', (element) => element.textContent);
  await withPage(browser, written(LIST).text(), {}, async (page) => {
    const of = (labels) => {
      const list = naive.selected(LIST, { type: 0, labels });
      const [sums] = sumsOf(list, 1);
      return kindsLine(NAMES, Object.values(sums), list.reduce((sum, { value }) => sum + value, 0));
    };
    const all = of({});
    assert.match(all, /^(quiet .* %, )?program .* %, library .* %, machine .* %$/);
    assert.equal(await line(page), all);
    const labels = { 'thread.name': ['thread.name-2'] };
    await page.evaluate((chosen) => window.otlpprof.set({ labels: chosen }), labels);
    assert.equal(await line(page), of(labels));
    assert.notEqual(of(labels), all);
  });
  const list = samples({ seed: 92, count: 400, sides: 2 });
  await withPage(browser, written(list, { sideNames: ['base', 'new'] }).text(), {}, async (page) => {
    const lines = await page.$$eval('.kinds div', (found) => found.map(({ textContent }) => textContent));
    assert.equal(lines.length, 2);
    assert.match(lines[0], /^base: .*program/);
    assert.match(lines[1], /^new: .*program/);
  });
  await withPage(browser, writerOf(LIST, FRAMES, { types: TYPES }).text(), {}, async (page) => {
    assert.equal(await page.$eval('.kinds', (element) => element.checkVisibility()), false);
  });
});
