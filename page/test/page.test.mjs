// The page in headless Chromium: drawing, search, keys, link, policy.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { Browser } from './support/browser.mjs';
import { samples, someFrames, tenStacks, TYPES, writerOf } from './support/generate.mjs';
import * as naive from './support/naive.mjs';
import { random } from './support/random.mjs';
import { ProfileWriter } from './support/writer.mjs';

const FRAMES = someFrames(40);
const TIMES = { startUnixMs: 1_700_000_000_000, stepMs: 10_000, count: 24 };
let browser;

before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

/** Opens a page, gives it to `check`, and holds every page to the policy: no other request, no error. */
async function withPage(text, options, check) {
  const address = browser.write(text);
  const page = await browser.show(address + (options.hash ?? ''), options);
  try {
    await check(page, address);
    assert.deepEqual(page.errors, []);
    assert.deepEqual([...new Set(page.requests.map((url) => url.split('#')[0]))], [address]);
  } finally {
    await page.close();
  }
}

const LIST = samples({ seed: 71, count: 2000, times: TIMES.count, labels: { 'thread.name': 6, endpoint: 12 }, types: 3,
  series: 2 });

function labelled() {
  return writerOf(LIST, FRAMES, { title: 'labelled', types: TYPES, labels: ['thread.name', 'endpoint'], times: TIMES,
    notes: ['first note', 'second <b>note</b>'], selection: '--where a=b' });
}

/** The page's nodes with a value, by path of names. */
function pagePaths(nodes) {
  const paths = [];
  const byNode = [];
  for (const { name, parent, totals } of nodes) {
    const path = parent <= 0 ? name : `${byNode[parent]};${name}`;
    byNode.push(path);
    if (parent >= 0 && totals.some((value) => value > 0)) {
      paths.push([path, totals]);
    }
  }
  return paths.sort((left, right) => (left[0] < right[0] ? -1 : 1));
}

function naivePaths(totals, sides = 1) {
  return [...totals].map(([path, values]) =>
    [path.split(' ').map((frame) => FRAMES[frame].name).join(';'), values.slice(0, sides)])
    .sort((left, right) => (left[0] < right[0] ? -1 : 1));
}

test('the values of each view equal the plain sums, node by node', async () => {
  await withPage(labelled().text(), {}, async (page) => {
    const nodes = (index = 0) => page.evaluate((at) => window.otlpprof.nodes(at), index);
    const set = (changes) => page.evaluate((state) => window.otlpprof.set(state), changes);
    const cpu = naive.selected(LIST, { type: 0 });
    assert.deepEqual(pagePaths(await nodes()), naivePaths(naive.topDown(cpu)));
    await set({ type: 'live-heap', window: [2, 20], labels: { endpoint: ['endpoint-3', 'endpoint-4'] } });
    const heap = naive.selected(LIST, { type: 2, isSnapshot: true, window: [2, 20],
      labels: { endpoint: ['endpoint-3', 'endpoint-4'] } });
    assert.deepEqual(pagePaths(await nodes()), naivePaths(naive.topDown(heap)));
    await set({ type: 'cpu', window: null, labels: {}, view: 'inverted' });
    assert.deepEqual(pagePaths(await nodes()), naivePaths(naive.inverted(cpu)));
    await set({ sandwich: FRAMES[12].name });
    assert.deepEqual(pagePaths(await nodes(0)), naivePaths(naive.callers(cpu, 12)));
    assert.deepEqual(pagePaths(await nodes(1)), naivePaths(naive.callees(cpu, 12)));
    const functions = await page.evaluate(() => window.otlpprof.functions());
    const expected = naive.functions(cpu);
    assert.equal(functions.length, expected.total.size);
    for (const { name, self, total } of functions) {
      const frame = FRAMES.findIndex((candidate) => candidate.name === name);
      assert.deepEqual([self[0], total[0]], [expected.self.get(frame)?.[0] ?? 0, expected.total.get(frame)[0]]);
    }
  });
});

test('a changed value and swapped sides make the comparison fail', async () => {
  const list = samples({ seed: 72, count: 300, sides: 2 });
  const diff = { sideNames: ['base', 'new'] };
  const check = (changed) => withPage(writerOf(changed, FRAMES, diff).text(), {}, async (page) => {
    assert.deepEqual(pagePaths(await page.evaluate(() => window.otlpprof.nodes())), naivePaths(naive.topDown(list), 2));
  });
  await check(list);
  const lost = list.map((sample, index) => (index === 17 ? { ...sample, value: sample.value + 1 } : sample));
  await assert.rejects(check(lost), assert.AssertionError);
  const swapped = list.map((sample) => ({ ...sample, side: 1 - sample.side }));
  await assert.rejects(check(swapped), assert.AssertionError);
});

test('1,000 random nodes: the middle pixel answers with the node, the width is the share', async () => {
  const list = samples({ seed: 73, count: 4000, depth: 30 });
  await withPage(writerOf(list, FRAMES).text(), {}, async (page) => {
    for (const flame of [false, true]) {
      await page.evaluate((state) => window.otlpprof.set({ flame: state }), flame);
      const nodes = await page.evaluate(() => window.otlpprof.nodes());
      const next = random(74);
      const chosen = Array.from({ length: 1000 }, () => 1 + Math.floor(next() * (nodes.length - 1)));
      const found = await page.evaluate((list) => list.map((node) => {
        const { otlpprof } = window;
        otlpprof.reveal(node);
        const box = otlpprof.boxOf(node);
        return { ...box, hit: otlpprof.nodeAt(box.left + box.width / 2, box.top + box.height / 2) };
      }), chosen);
      const width = await page.evaluate(() => window.otlpprof.width);
      found.forEach((box, index) => {
        const node = chosen[index];
        assert.equal(box.hit, node);
        assert.ok(Math.abs(box.width - (nodes[node].totals[0] / nodes[0].totals[0]) * width) <= 1);
      });
    }
  });
});

test('pixels of a box have its colour, and a box that matches another', async () => {
  await withPage(tenStacks().text(), {}, async (page) => {
    const colour = (name) => page.evaluate((wanted) => {
      const { otlpprof } = window;
      const node = otlpprof.nodes().findIndex((candidate) => candidate.name === wanted);
      const box = otlpprof.boxOf(node);
      const canvas = document.querySelector('canvas.flame');
      const area = canvas.getBoundingClientRect();
      const x = box.left - area.left + box.width - 3;
      return [...canvas.getContext('2d').getImageData(x, box.top - area.top + 2, 1, 1).data].join();
    }, name);
    const before = await colour('java.util.HashMap.get');
    const other = await colour('GangWorker::run');
    assert.notEqual(before, other);
    await page.evaluate(() => window.otlpprof.set({ search: 'HashMap' }));
    assert.notEqual(await colour('java.util.HashMap.get'), before);
    assert.equal(await colour('java.util.HashMap.get'), await colour('java.util.HashMap.getNode'));
    await page.evaluate(() => window.otlpprof.set({ search: '' }));
    assert.equal(await colour('java.util.HashMap.get'), before);
  });
});

test('a search shows its share, filters the table, and steps through matches', async () => {
  await withPage(tenStacks().text(), {}, async (page) => {
    await page.keyboard.press('/');
    await page.keyboard.type('HashMap|Prices');
    await page.keyboard.press('Enter');
    const text = (selector) => page.$eval(selector, (element) => element.textContent);
    assert.match(await text('.found'), /^20\.39 % in 1/);
    await page.evaluate(() => window.otlpprof.app.tableDone);
    assert.equal(await text('.table-note'), '3 matching functions');
    await page.keyboard.press('Escape');
    const selected = () => page.evaluate(() => window.otlpprof.nodes()[window.otlpprof.selected]?.name);
    await page.evaluate(() => window.otlpprof.set({ search: 'add$|find$|multiply$' }));
    const seen = [];
    for (const key of ['n', 'n', 'n', 'n', 'N']) {
      await (key === 'N' ? page.keyboard.down('Shift') : null);
      await page.keyboard.press(key);
      await (key === 'N' ? page.keyboard.up('Shift') : null);
      seen.push(await page.evaluate(() => window.otlpprof.app.matchAt));
      assert.match(await selected() ?? 'none', /(add|find|multiply)$/);
    }
    assert.deepEqual(seen, [0, 1, 2, 0, 2]);
    await page.keyboard.press('o');
    const names = await page.evaluate(() => window.otlpprof.nodes().filter(({ totals }) => totals[0] > 0)
      .map(({ name }) => name));
    assert.ok(names.includes('java.math.BigDecimal.add') && !names.includes('start_thread'));
    await page.evaluate(() => window.otlpprof.set({ search: '(' }));
    assert.equal(await text('.found'), 'not valid');
  });
});

test('click zooms, the way back zooms out, and keys do all of it', async () => {
  await withPage(tenStacks().text(), {}, async (page) => {
    const zoomed = () => page.evaluate(() => window.otlpprof.nodes()[window.otlpprof.zoom[0]].name);
    const at = (name) => page.evaluate((wanted) => {
      const node = window.otlpprof.nodes().findIndex((candidate) => candidate.name === wanted);
      const box = window.otlpprof.boxOf(node);
      return [box.left + box.width / 2, box.top + box.height / 2];
    }, name);
    const name = 'com.example.shop.web.CartController.show';
    await page.mouse.click(...await at(name));
    assert.equal(await zoomed(), name);
    await page.mouse.move(...await at('java.util.HashMap.get'));
    assert.match(await page.$eval('.tooltip', (element) => element.textContent), /400 ms · 20\.39 % of all · 100 % of parent/);
    await page.goBack();
    assert.equal(await zoomed(), 'all');
    await page.evaluate(() => window.otlpprof.app.pane.selectNode(0, 0));
    for (const key of ['ArrowDown', 'ArrowDown', 'Enter']) {
      await page.keyboard.press(key);
    }
    assert.equal(await zoomed(), 'java.util.concurrent.ThreadPoolExecutor$Worker.run');
    await page.keyboard.press('Backspace');
    assert.equal(await zoomed(), 'java.lang.Thread.run');
    await page.keyboard.press('0');
    assert.equal(await zoomed(), 'all');
    const state = () => page.evaluate(() => ({ ...window.otlpprof.app.state, labels: null }));
    for (const [key, name, value] of [['i', 'flame', true], ['v', 'view', 'inverted'], ['v', 'view', 'main'],
      ['c', 'colour', 'package'], ['d', 'theme', 'dark'], ['t', 'panes', 'graph']]) {
      await page.keyboard.press(key);
      assert.equal((await state())[name], value, key);
    }
    await page.keyboard.press('i');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('s');
    assert.equal((await state()).view, 'sandwich');
    await page.keyboard.press('Escape');
    assert.equal((await state()).view, 'main');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('x');
    assert.equal((await state()).filters.length, 1);
    await page.keyboard.press('u');
    assert.equal((await state()).filters.length, 0);
    await page.keyboard.press('?');
    assert.equal(await page.$eval('.help', (element) => element.offsetParent !== null || element.clientHeight > 0), true);
    await page.keyboard.press('Escape');
    assert.equal(await page.$eval('.overlay', (element) => element.hidden), true);
  });
});

test('labels are chosen by typing, windows by dragging, cells by a click', async () => {
  await withPage(labelled().text(), {}, async (page) => {
    await page.evaluate(() => document.querySelectorAll('.labels > .label')[1].click());
    await page.keyboard.type('point-7');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    const sum = () => page.evaluate(() => window.otlpprof.nodes()[0].totals[0]);
    const expected = (choice) => naive.selected(LIST, { type: 0, ...choice }).reduce((total, { value }) => total + value, 0);
    const labels = { endpoint: ['endpoint-7'] };
    assert.equal(await sum(), expected({ labels }));
    const strip = await page.$eval('.strip', (element) => {
      const { left, top, width, height } = element.getBoundingClientRect();
      return { left, top, width, height };
    });
    const x = (step) => strip.left + ((step + 0.5) * strip.width) / TIMES.count;
    await page.mouse.move(x(12), strip.top + 20);
    await page.mouse.down();
    await page.mouse.move(x(5), strip.top + 20);
    await page.mouse.up();
    assert.equal(await sum(), expected({ labels, window: [5, 13] }));
    for (const [key, window] of [[']', [13, 21]], ['{', [15, 19]], ['}', [13, 21]]]) {
      await page.keyboard.press(key);
      assert.deepEqual(await page.evaluate(() => window.otlpprof.app.state.window), window);
    }
    await page.keyboard.press('w');
    await page.keyboard.press('h');
    const heat = await page.$eval('.heat', (element) => {
      const { left, top } = element.getBoundingClientRect();
      return { left, top };
    });
    const cell = await page.evaluate(() => ({ rows: window.otlpprof.app.heatMap.rows, width: window.otlpprof.app.heatMap.cell }));
    await page.mouse.click(heat.left + cell.width * 1.5, heat.top + 11 * 0.5);
    assert.equal(await sum(), expected({ labels, window: [cell.rows, cell.rows + 1] }));
    await page.keyboard.press('w');
    await page.keyboard.press('r');
    assert.equal(await page.evaluate(() => window.otlpprof.app.state.view), 'order');
  });
});

test('a link reproduces the view in a new page', async () => {
  const text = labelled().text();
  let hash;
  let expected;
  const view = (page) => page.evaluate(() => ({
    nodes: window.otlpprof.nodes(), zoom: window.otlpprof.zoom, matches: window.otlpprof.matches(),
    theme: document.documentElement.dataset.theme, flame: window.otlpprof.app.state.flame,
    table: (window.otlpprof.app.table.show(window.otlpprof.app.model, window.otlpprof.app.state),
    document.querySelector('.rows').textContent),
  }));
  for (const changes of [
    { type: 'alloc', labels: { endpoint: ['endpoint-1', 'endpoint-2'] }, window: [3, 17], search: 'run|\\$', theme: 'dark',
      flame: true, colour: 'package', sort: 'total', filters: [{ keep: false, name: FRAMES[5].name }] },
    { view: 'inverted', onlyMatches: true, search: 'java' }, { sandwich: FRAMES[2].name }, { view: 'order', thread: 2 },
  ]) {
    await withPage(text, {}, async (page) => {
      await page.evaluate((state) => {
        window.otlpprof.set(state);
        const { app } = window.otlpprof;
        const graph = app.pane.graphs[0];
        app.zoomTo(0, graph.tree.levelNodes[graph.tree.levelStart[2]]);
      }, changes);
      expected = await view(page);
      hash = await page.evaluate(() => window.otlpprof.link);
      assert.ok(expected.zoom[0] > 0);
    });
    await withPage(text, { hash }, async (page) => {
      assert.deepEqual(await view(page), expected);
    });
  }
});

test('light and dark follow the system until the switch is used', async () => {
  for (const isDark of [false, true]) {
    await withPage(tenStacks().text(), { isDark }, async (page) => {
      const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const before = await background();
      assert.equal(before, isDark ? 'rgb(20, 23, 28)' : 'rgb(246, 247, 249)');
      await page.keyboard.press('d');
      assert.notEqual(await background(), before);
    });
  }
});

test('names, labels, titles and notes with markup are text', async () => {
  const bad = ['<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '</script><script>alert(2)</script>',
    '"><svg onload=alert(3)>', '@@PROFILE@@ $& $1'];
  const writer = new ProfileWriter({ title: bad[1], types: [{ ...TYPES[0], label: bad[0] }], labels: [bad[3]],
    notes: bad, selection: bad[2], times: TIMES });
  writer.add(bad.map((name) => writer.frame(name, 0, name)), 5, { set: writer.set({ [bad[3]]: bad[0] }), time: 3 });
  await withPage(writer.text(), {}, async (page) => {
    assert.deepEqual((await page.evaluate(() => window.otlpprof.nodes())).map(({ name }) => name), ['all', ...bad]);
    await page.evaluate(() => {
      const { app } = window.otlpprof;
      app.labels.toggle(0);
      app.openFrameMenu(0, 50, 50);
      app.addFilter(true, 1);
      app.sandwich(2);
      app.set({ search: '<img', heatMap: true });
      app.tooltip.show(app.model, app.pane.graphs[1], 1, 10, 10);
      return app.tableDone;
    });
    const counts = await page.evaluate(() => ['img', 'svg', 'script'].map((tag) =>
      document.body.querySelectorAll(tag === 'svg' ? 'svg' : tag).length));
    // The page's own script is the only one.
    assert.deepEqual(counts, [0, 0, await page.evaluate(() => document.body.querySelectorAll('script:not([id])').length)]);
    assert.match(await page.$eval('.rows', (element) => element.textContent), /<img src=x onerror=alert\(1\)>/);
    assert.equal(await page.title(), bad[1]);
  });
});

test('the policy forbids other scripts, styles and requests', async () => {
  const address = browser.write(tenStacks().text());
  const page = await browser.show(address);
  const ran = await page.evaluate(async () => {
    const script = document.createElement('script');
    script.textContent = 'window.intruder = 1';
    document.body.append(script);
    const fetched = await fetch('data:text/plain,x').then(() => true, () => false);
    return [window.intruder ?? 0, fetched];
  });
  assert.deepEqual(ran, [0, false]);
  await page.close();
});

test('a page without a profile, or with a damaged one, says so', async () => {
  for (const [text, message] of [['@@PROFILE@@', /has no profile/], ['AAAA', /cannot be read/], ['%', /cannot be read/]]) {
    const page = await browser.show(browser.write(text));
    assert.match(await page.$eval('.failure', (element) => element.textContent), message);
    await page.close();
  }
});
