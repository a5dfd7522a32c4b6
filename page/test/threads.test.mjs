// Stacks by thread, against plain samples whose stacks begin with a frame for the thread.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { decodeState, encodeState, initialState } from '../src/link.js';
import { Browser } from './support/browser.mjs';
import { samples, someFrames, TYPES, writerOf } from './support/generate.mjs';
import * as naive from './support/naive.mjs';
import { frameNumbers, modelOf, open, pathsOf, sorted } from './support/open.mjs';
import { FRAMES, labelled, LIST as LABELLED, withPage } from './support/opened.mjs';

const TIMES = { startUnixMs: 0, stepMs: 1000, count: 12 };
const LABELS = { 'thread.name': 5, endpoint: 3 };
const LIST = samples({ seed: 95, count: 1500, times: 12, labels: LABELS, types: 3, series: 2, sides: 2 });

/** The samples with their threads as roots. A thread is a text among the numbers of a stack. */
function rooted(list) {
  return list.map((sample) => ({
    ...sample,
    stack: [sample.labels['thread.name'] ?? '[no_thread]', ...sample.stack],
  }));
}

async function setUp(list, header = {}) {
  const options = { types: TYPES, labels: Object.keys(LABELS), times: TIMES, ...header };
  const profile = await open(writerOf(list, FRAMES, options));
  const numbers = frameNumbers(profile, FRAMES);
  const back = new Map(numbers.map((number, sample) => [number, sample]));
  return { profile, numbers, samplesOf: (frame) => back.get(frame) ?? profile.name(frame) };
}

const DIFF = { sideNames: ['base', 'new'] };

test('each view and the functions have the thread as root, under every selection', async () => {
  const { profile, numbers, samplesOf } = await setUp(LIST, DIFF);
  const threadOf = (name) => profile.labels[0].values.indexOf(name) + 1;
  for (const { type, window = null, thread = null, filters = [] } of [
    { type: 0 },
    { type: 1, window: [2, 8] },
    { type: 2, window: [0, 7] },
    { type: 0, thread: 'thread.name-3' },
    { type: 0, filters: [{ keep: true, frame: 1 }] },
    { type: 1, filters: [{ keep: false, frame: 2 }] },
  ]) {
    const labels = thread ? { 'thread.name': [thread] } : {};
    const state = {
      type,
      window,
      threads: true,
      labels: new Map(thread ? [[0, new Set([threadOf(thread)])]] : []),
      filters: filters.map(({ keep, frame }) => ({ keep, frame: numbers[frame] })),
    };
    const selected = naive.selected(LIST, { type, labels, window, isSnapshot: TYPES[type].snapshot });
    const list = rooted(naive.filtered(selected, filters));
    const model = modelOf(profile, state);
    assert.deepEqual(sorted(pathsOf(model.graphs()[0], samplesOf)), sorted(naive.topDown(list)));
    assert.deepEqual(
      sorted(pathsOf(model.graphs()[0], samplesOf, true)),
      sorted(naive.selfValues(list)),
    );
    const inverted = modelOf(profile, { ...state, view: 'inverted' });
    assert.deepEqual(
      sorted(pathsOf(inverted.complete(inverted.graphs()[0]), samplesOf)),
      sorted(naive.inverted(list)),
    );
    const { total } = naive.functions(list);
    const found = model.functions();
    for (let frame = 0; frame < profile.frames; frame++) {
      const expected = total.get(samplesOf(frame)) ?? [0, 0];
      assert.deepEqual([found[0].total[frame], found[1].total[frame]], expected, profile.name(frame));
    }
    const sandwich = modelOf(profile, { ...state, view: 'sandwich', sandwich: numbers[1] });
    assert.deepEqual(
      sorted(pathsOf(sandwich.complete(sandwich.graphs()[0]), samplesOf)),
      sorted(naive.callers(list, 1)),
    );
  }
});

test('a search and a focus find threads by their names, while they are roots alone', async () => {
  const { profile } = await setUp(LIST, DIFF);
  const sum = (list) => list.reduce((total, { value }) => total + value, 0);
  const of = (name) =>
    sum(LIST.filter(({ type, side, labels }) => type === 0 && side === 1 && labels['thread.name'] === name));
  const search = 'thread\\.name-2';
  const found = (threads) => modelOf(profile, { search, threads, diffMode: 'raw' }).matchSum().sum;
  assert.equal(found(true), of('thread.name-2'));
  assert.equal(found(false), 0);
  const frame = profile.threadFrame(profile.labels[0].values.indexOf('thread.name-2') + 1);
  const focused = modelOf(profile, { threads: true, filters: [{ keep: true, frame }] });
  assert.equal(focused.totals[1], of('thread.name-2'));
});

test('the header names the first state of the switch, and a link the state', async () => {
  const { profile } = await setUp(LIST, DIFF);
  assert.equal(initialState(profile).threads, false);
  profile.header.byThread = true;
  assert.equal(initialState(profile).threads, true);
  for (const threads of [true, false]) {
    const state = { ...initialState(profile), threads };
    const fragment = encodeState(profile, state);
    assert.equal(fragment, threads ? '' : 'threads=0');
    assert.deepEqual(decodeState(profile, fragment), state);
  }
  const without = await open(writerOf(LIST, someFrames(40), { types: TYPES, labels: ['endpoint'] }));
  const model = modelOf(without, { threads: true });
  assert.equal(model.source, without);
});

let browser;

before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

test('the switch changes roots and legend, and keeps the zoom and filters that still exist', async () => {
  await withPage(browser, labelled().text(), {}, async (page) => {
    const text = (selector) => page.$eval(selector, (element) => element.textContent);
    const roots = () =>
      page.evaluate(() =>
        window.otlpprof
          .nodes()
          .filter(({ level, totals }) => level === 1 && totals[0] > 0)
          .map(({ name }) => name)
          .sort(),
      );
    const cpu = naive.selected(LABELLED, { type: 0 });
    const threads = [...new Set(rooted(cpu).map(({ stack }) => stack[0]))].sort();
    const functions = [...new Set(cpu.map(({ stack }) => FRAMES[stack[0]].name))].sort();
    assert.deepEqual(await roots(), functions);
    assert.doesNotMatch(await text('.legend'), /thread/);
    await page.keyboard.press('g');
    assert.deepEqual(await roots(), threads);
    assert.match(await text('.legend'), /thread/);
    assert.equal(await page.evaluate(() => window.otlpprof.link), '#threads=1');
    const zoomed = () => page.evaluate(() => window.otlpprof.nodes()[window.otlpprof.zoom[0]].name);
    const { name, below } = await page.evaluate(() => {
      const { otlpprof } = window;
      const nodes = otlpprof.nodes();
      const thread = nodes.findIndex(({ level, totals }) => level === 1 && totals[0] > 0);
      const node = nodes.findIndex(({ parent, totals }) => parent === thread && totals[0] > 0);
      otlpprof.app.zoomTo(0, node);
      const filter = (name) => ({ keep: true, name });
      otlpprof.set({ filters: [filter(nodes[thread].name), filter(nodes[node].name)] });
      return { name: nodes[thread].name, below: nodes[node].name };
    });
    assert.equal(await zoomed(), below);
    await page.$eval('.controls', (controls) =>
      [...controls.querySelectorAll('button')].find((one) => one.textContent === 'By thread').click(),
    );
    assert.equal(await zoomed(), below);
    const { filters } = await page.evaluate(() => window.otlpprof.app.state);
    assert.equal(filters.length, 1);
    assert.ok(!functions.includes(name));
    await page.goBack();
    assert.equal(await zoomed(), below);
    assert.deepEqual(await roots(), [name]);
  });
  const without = writerOf(LABELLED, FRAMES, { types: TYPES });
  await withPage(browser, without.text(), {}, async (page) => {
    await page.keyboard.press('g');
    assert.equal(await page.evaluate(() => window.otlpprof.app.state.threads), false);
    assert.doesNotMatch(await page.$eval('.controls', (element) => element.textContent), /By thread/);
  });
});
