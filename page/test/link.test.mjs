// Links name functions and threads, so that they hold on pages of other data.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { decodeState, encodeState, initialState } from '../src/link.js';
import { Browser } from './support/browser.mjs';
import { samples, TYPES, writerOf } from './support/generate.mjs';
import { modelOf, open } from './support/open.mjs';
import { FRAMES, labelled, LIST, withPage } from './support/opened.mjs';
import { ProfileWriter } from './support/writer.mjs';

/** Letters of a link that hold a path of frames. */
const MOST_LETTERS = 2000;

/** A profile of stacks, each of frames `name` or `[name, kind, detail]`. */
function stacked(stacks, options = {}) {
  const writer = new ProfileWriter({ types: TYPES, labels: ['thread.name'], ...options });
  stacks.forEach((stack, at) =>
    writer.add(
      stack.map((frame) => writer.frame(...[frame].flat())),
      at + 1,
      { set: writer.set({ 'thread.name': `worker-${at}` }) },
    ),
  );
  return open(writer);
}

/** The names of the frames of a state's zoom. */
const zoomNames = (profile, state) => state.zoom.map((frame) => profile.name(frame));

/** The state that zooms to the node of a path of names. */
function zoomTo(profile, names, changes = {}) {
  const state = { ...initialState(profile), ...changes };
  const { tree } = modelOf(profile, state).source;
  const found = [...Array(tree.count).keys()].find(
    (node) => node > 0 && tree.path(node).map((at) => profile.name(tree.frame[at])).join() === names.join(),
  );
  return { ...state, zoom: tree.path(found).map((at) => tree.frame[at]) };
}

const treeOf = (profile) => (state) => modelOf(profile, state).source.tree;

function followed(from, state, to) {
  const fragment = encodeState(from, state, treeOf(from));
  return [fragment, decodeState(to, fragment, treeOf(to))];
}

test('a link of another page finds the same functions by their names', async () => {
  const first = await stacked([
    ['main', 'shop.Cart$Item.sum', 'shop.Tax.of'],
    ['main', 'shop.Cart$Item.sum', 'shop.Tax.of', 'shop.Rate.get'],
    ['main', 'other'],
  ]);
  const other = await stacked([
    ['init', 'a', 'b', 'c', 'd'],
    ['main', 'new.Filter.run'],
    ['main', 'shop.Cart$Item.sum', 'shop.Tax.of'],
  ]);
  const path = ['main', 'shop.Cart$Item.sum', 'shop.Tax.of', 'shop.Rate.get'];
  const frame = (profile, name) => [...Array(profile.frames).keys()].find((at) => profile.name(at) === name);
  const state = {
    ...zoomTo(first, path),
    filters: [
      { keep: true, frame: frame(first, 'shop.Tax.of') },
      { keep: false, frame: frame(first, 'other') },
    ],
    sandwich: frame(first, 'main'),
    thread: 2,
  };
  const [fragment, same] = followed(first, state, first);
  assert.equal(
    fragment,
    'focus.name=shop.Tax.of&remove.name=other&zoom.name=main;shop.Cart$Item.sum;shop.Tax.of;shop.Rate.get' +
      '&sandwich.name=main&thread.name=worker-1',
  );
  assert.deepEqual(same, state);
  const [, found] = followed(first, state, other);
  // The other page lacks the innermost function, and the function that was removed.
  assert.deepEqual(zoomNames(other, found), path.slice(0, 3));
  assert.deepEqual(found.filters, [{ keep: true, frame: frame(other, 'shop.Tax.of') }]);
  assert.equal(other.name(found.sandwich), 'main');
  assert.equal(other.labels[0].values[found.thread - 1], 'worker-1');
});

test('frames of one name are told apart, and found on a page that does not tell them apart', async () => {
  const lines = (...numbers) => numbers.map((line) => ['Main.run', 0, `Main.java:${line}`]);
  const first = await stacked([
    [['main', 1, ''], ...lines(1, 2)],
    [['main', 0, ''], ...lines(2, 3)],
  ]);
  const whole = await stacked([[['main', 1, ''], 'Main.run', 'Main.run']]);
  for (let node = 1; node < first.tree.count; node++) {
    const zoom = first.tree.path(node).map((at) => first.tree.frame[at]);
    const state = { ...initialState(first), zoom };
    const [fragment, same] = followed(first, state, first);
    assert.deepEqual(same, state, fragment);
    assert.deepEqual(zoomNames(whole, followed(first, state, whole)[1]), zoomNames(first, state));
  }
  const state = zoomTo(whole, ['main', 'Main.run']);
  assert.deepEqual(zoomNames(first, followed(whole, state, first)[1]), ['main', 'Main.run']);
});

test('names may have any letters', async () => {
  const names = ['a;b', 'c*3', '*x', 'd|e', '%3b', '', '日本 é&=#+', 'A<int, char*>::operator new(long)'];
  const profile = await stacked([names, [...names, 'last'], [names[0], names[0], names[0], names[1]]]);
  for (let node = 1; node < profile.tree.count; node++) {
    const zoom = profile.tree.path(node).map((at) => profile.tree.frame[at]);
    const sandwich = profile.tree.frame[node];
    const state = { ...initialState(profile), zoom, sandwich, filters: [{ keep: true, frame: sandwich }] };
    const [fragment, same] = followed(profile, state, profile);
    assert.deepEqual(same, state, fragment);
    assert.equal(new URL(`file:///page.html#${fragment}`).hash, `#${fragment}`);
  }
});

test('a long path is its end where that is unique, otherwise hashes, and bounded', async () => {
  const deep = Array.from({ length: 150 }, (_, at) => `com.example.shop.Handler${at}.handle`);
  const pair = ['com.example.json.Visitor.visitArray', 'com.example.json.Visitor.visitObject'];
  const nested = ['main', ...Array.from({ length: 160 }, (_, at) => pair[at % 2])];
  const deepest = Array.from({ length: 900 }, (_, at) => `com.example.shop.Generated${at}.call`);
  const long = 'x'.repeat(3000);
  const profile = await stacked([deep, nested, [...deepest, long]]);
  const other = await stacked([['outer', ...deep], ['x'], nested]);
  for (const [path, parameter, inOther] of [
    [deep, /^zoom\.end=com/, ['outer', ...deep]],
    [nested, /^zoom\.name=\*/, nested],
    [nested.slice(0, 70), /^zoom\.name=\*/, nested.slice(0, 70)],
    [[...deepest, long], /^zoom\.end=.*;\*\w+$/, []],
  ]) {
    const state = zoomTo(profile, path);
    const [fragment, same] = followed(profile, state, profile);
    assert.match(fragment, parameter);
    assert.ok(fragment.length <= MOST_LETTERS + 10, `${fragment.length}`);
    assert.deepEqual(same, state);
    const [, found] = followed(profile, state, other);
    assert.deepEqual(zoomNames(other, found), inOther);
  }
  // In the inverted view a path is none of the profile's tree.
  const state = { ...zoomTo(profile, deepest), view: 'inverted' };
  const [fragment, cut] = followed(profile, state, profile);
  assert.ok(fragment.length <= MOST_LETTERS + 30, `${fragment.length}`);
  assert.ok(cut.zoom.length > 200);
  assert.deepEqual(cut.zoom, state.zoom.slice(0, cut.zoom.length));
});

test('a link by thread begins its path with the thread', async () => {
  const profile = await stacked([['worker-1', 'run'], ['worker-1', 'run'], ['run']]);
  const state = zoomTo(profile, ['worker-1', 'worker-1', 'run'], { threads: true });
  assert.equal(state.zoom.length, 3);
  const [fragment, same] = followed(profile, state, profile);
  assert.match(fragment, /^zoom\.name=worker-1%7Cthread%7C;worker-1%7CJava%7C;run&threads=1$/);
  assert.deepEqual(same, state);
});

test('a link of an older page still has its numbers', async () => {
  const profile = await open(labelled());
  const zoom = profile.tree.path(20).map((at) => profile.tree.frame[at]);
  const numbers = zoom.map((frame) => frame.toString(36)).join('.');
  const old = `focus=3&remove=5&zoom=${numbers}&view=main&sandwich=4&thread=2`;
  assert.deepEqual(decodeState(profile, old), {
    ...initialState(profile),
    zoom,
    filters: [
      { keep: true, frame: 3 },
      { keep: false, frame: 5 },
    ],
    sandwich: 4,
    thread: 2,
  });
});

let browser;

before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

test('a link goes to the same boxes on a page of other samples', async () => {
  const zoomed = (page) =>
    page.evaluate(() => {
      const { otlpprof } = window;
      const { pane, profile, state } = otlpprof.app;
      const { tree } = pane.graphs[0];
      const names = (node) => tree.path(node).map((at) => profile.name(tree.frame[at]));
      return [names(otlpprof.zoom[0]), state.search, state.filters.map(({ frame }) => profile.name(frame))];
    });
  // Other samples come first, so that frames and nodes have other numbers.
  const list = [...samples({ seed: 7, count: 300, labels: { 'thread.name': 6 } }), ...LIST];
  const other = writerOf(list, FRAMES, { types: TYPES, labels: ['thread.name'] });
  for (const changes of [{}, { threads: true }, { view: 'inverted' }]) {
    let link;
    let expected;
    await withPage(browser, labelled().text(), {}, async (page) => {
      await page.evaluate((state) => {
        const { otlpprof } = window;
        const filters = [{ keep: true, name: otlpprof.app.profile.name(1) }];
        otlpprof.set({ ...state, search: 'run', filters });
        const { tree, widths } = otlpprof.app.pane.graphs[0];
        const start = tree.levelStart[3];
        const nodes = [...tree.levelNodes.slice(start, tree.levelStart[4])];
        otlpprof.app.zoomTo(0, nodes.find((node) => widths[tree.end[node]] > widths[node]));
      }, changes);
      link = await page.evaluate(() => window.otlpprof.link);
      expected = await zoomed(page);
      assert.equal(expected[0].length, 3);
    });
    await withPage(browser, other.text(), { hash: link }, async (page) => {
      assert.deepEqual(await zoomed(page), expected);
    });
  }
  for (const hash of ['#zoom=zz.1.2&focus=999999&sandwich=-7', '#zoom.name=none;*9*z&focus.name=none']) {
    await withPage(browser, other.text(), { hash }, async (page) => {
      assert.equal(await page.evaluate(() => window.otlpprof.zoom[0]), 0);
      assert.equal(await page.evaluate(() => window.otlpprof.app.state.filters.length), 0);
    });
  }
});
