// The use of the page in headless Chromium: search, mouse, keys, labels, time, link, light and dark.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { Browser } from './support/browser.mjs';
import { tenStacks } from './support/generate.mjs';
import * as naive from './support/naive.mjs';
import { FRAMES, labelled, LIST, TIMES, withPage } from './support/opened.mjs';

let browser;

before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

test('a search shows its share, filters the table, and steps through matches', async () => {
  await withPage(browser, tenStacks().text(), {}, async (page) => {
    await page.keyboard.press('/');
    await page.keyboard.type('HashMap|Prices');
    await page.keyboard.press('Enter');
    const text = (selector) => page.$eval(selector, (element) => element.textContent);
    assert.match(await text('.found'), /^20\.39 % · 1 of 1$/);
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
      assert.match((await selected()) ?? 'none', /(add|find|multiply)$/);
    }
    assert.deepEqual(seen, [0, 1, 2, 0, 2]);
    await page.keyboard.press('o');
    const names = await page.evaluate(() =>
      window.otlpprof
        .nodes()
        .filter(({ totals }) => totals[0] > 0)
        .map(({ name }) => name),
    );
    assert.ok(names.includes('java.math.BigDecimal.add') && !names.includes('start_thread'));
    await page.evaluate(() => window.otlpprof.set({ search: '(' }));
    assert.equal(await text('.found'), 'not valid');
  });
});

test('the first match is the widest one', async () => {
  await withPage(browser, tenStacks().text(), {}, async (page) => {
    await page.keyboard.press('/');
    await page.keyboard.type('run$');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    const totals = [];
    for (let match = 0; match < 2; match++) {
      totals.push(await page.evaluate(() => window.otlpprof.nodes()[window.otlpprof.selected].totals[0]));
      await page.evaluate(() => window.otlpprof.app.stepMatch(1));
    }
    assert.ok(totals[0] >= totals[1], totals.join());
    const nodes = await page.evaluate(() => window.otlpprof.nodes());
    const matching = nodes.filter(({ name }) => /run$/.test(name));
    assert.equal(totals[0], Math.max(...matching.map((node) => node.totals[0])));
  });
});

test('click zooms, the way back zooms out, and keys do all of it', async () => {
  await withPage(browser, tenStacks().text(), {}, async (page) => {
    const zoomed = () => page.evaluate(() => window.otlpprof.nodes()[window.otlpprof.zoom[0]].name);
    const at = (name) =>
      page.evaluate((wanted) => {
        const node = window.otlpprof.nodes().findIndex((candidate) => candidate.name === wanted);
        const box = window.otlpprof.boxOf(node);
        return [box.left + box.width / 2, box.top + box.height / 2];
      }, name);
    const name = 'com.example.shop.web.CartController.show';
    await page.mouse.click(...(await at(name)));
    assert.equal(await zoomed(), name);
    const text = (selector) => page.$eval(selector, (element) => element.textContent);
    assert.match(await text('.facts'), /^com\.example\.shop\.web\.CartController\.show/);
    await page.evaluate(() => window.otlpprof.app.tableDone);
    assert.match(await text('.table-note'), / functions in the zoomed box$/);
    const rows = await page.$$eval('.rows .name', (cells) => cells.map(({ title }) => title));
    assert.ok(rows.includes('java.util.HashMap.get') && !rows.includes('start_thread'), rows.join());
    assert.match(await text('.rows .name[title="java.util.HashMap.get"]'), /HashMap\.getjava\.util$/);
    await page.mouse.move(...(await at('java.util.HashMap.get')));
    assert.match(
      await page.$eval('.tooltip', (element) => element.textContent),
      /400 ms · 20\.39 % of all · 100 % of parent/,
    );
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
    for (const [key, name, value] of [
      ['i', 'flame', true],
      ['v', 'view', 'inverted'],
      ['v', 'view', 'main'],
      ['c', 'colour', 'package'],
      ['d', 'theme', 'dark'],
      ['t', 'panes', 'graph'],
    ]) {
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
    assert.equal(
      await page.$eval('.help', (element) => element.offsetParent !== null || element.clientHeight > 0),
      true,
    );
    await page.keyboard.press('Escape');
    assert.equal(await page.$eval('.overlay', (element) => element.hidden), true);
  });
});

test('boxes below the minimum width alone are hidden, in each view and direction', async () => {
  await withPage(browser, tenStacks().text(), {}, async (page) => {
    for (const view of ['main', 'inverted']) {
      for (const flame of [false, true]) {
        // By node: its share in percent, and whether the middle of its box answers with the node.
        const nodes = (minPercent) =>
          page.evaluate(
            (state) => {
              window.otlpprof.set({ ...state, minPercent: 0 });
              const all = window.otlpprof.nodes();
              const wide = all.map((node, at) => at).filter((at) => window.otlpprof.boxOf(at)?.width > 3);
              window.otlpprof.set(state);
              return wide.map((at) => {
                window.otlpprof.reveal(at);
                const box = window.otlpprof.boxOf(at);
                const found = box
                  ? window.otlpprof.nodeAt(box.left + box.width / 2, box.top + box.height / 2)
                  : -1;
                return [(all[at].totals[0] / all[0].totals[0]) * 100, found === at];
              });
            },
            { view, flame, minPercent },
          );
        const everything = await nodes(0);
        assert.ok(everything.length > 20, `${view}: ${everything.length} boxes`);
        assert.ok(everything.every(([, isHit]) => isHit));
        const wide = await nodes(15);
        assert.equal(wide.length, everything.length);
        assert.ok(wide.some(([share]) => share < 15) && wide.some(([share]) => share >= 15));
        for (const [share, isHit] of wide) {
          assert.equal(isHit, share >= 15, `${view}, flame ${flame}: ${share} %`);
        }
      }
    }
  });
});

test('labels are chosen by typing, windows by dragging, cells by a click', async () => {
  await withPage(browser, labelled().text(), {}, async (page) => {
    await page.keyboard.press('l');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.keyboard.type('point-7');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    const sum = () => page.evaluate(() => window.otlpprof.nodes()[0].totals[0]);
    const expected = (choice) =>
      naive.selected(LIST, { type: 0, ...choice }).reduce((total, { value }) => total + value, 0);
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
    for (const [key, window] of [
      [']', [13, 21]],
      ['{', [15, 19]],
      ['}', [13, 21]],
    ]) {
      await page.keyboard.press(key);
      assert.deepEqual(await page.evaluate(() => window.otlpprof.app.state.window), window);
    }
    await page.keyboard.press('w');
    await page.keyboard.press('h');
    const heat = await page.$eval('.heat', (element) => {
      const { left, top } = element.getBoundingClientRect();
      return { left, top };
    });
    const cell = await page.evaluate(() => ({
      rows: window.otlpprof.app.heatMap.layout.rows,
      width: window.otlpprof.app.heatMap.cell,
    }));
    await page.mouse.click(heat.left + cell.width * 1.5, heat.top + 11 * 0.5);
    assert.equal(await sum(), expected({ labels, window: [cell.rows, cell.rows + 1] }));
    await page.mouse.move(heat.left + cell.width * 2.5, heat.top + 2);
    await page.mouse.down();
    await page.mouse.move(heat.left + cell.width * 0.5, heat.top + 2);
    await page.mouse.up();
    assert.equal(await sum(), expected({ labels, window: [0, 2 * cell.rows + 1] }));
    await page.keyboard.press('w');
    await page.keyboard.press('r');
    assert.equal(await page.evaluate(() => window.otlpprof.app.state.view), 'order');
  });
});

test('the heat map is used by keys alone', async () => {
  await withPage(browser, labelled().text(), {}, async (page) => {
    const { times } = await page.evaluate(() => window.otlpprof.header);
    const chosenWindow = () => page.evaluate(() => window.otlpprof.app.state.window);
    const press = async (...keys) => {
      for (const key of keys) {
        await page.keyboard.press(key);
      }
    };
    await press('h');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'heat');
    const rows = await page.evaluate(() => window.otlpprof.app.heatMap.layout.rows);
    await press('ArrowRight', 'ArrowDown', 'Enter');
    assert.deepEqual(await chosenWindow(), [rows + 1, rows + 2]);
    await page.keyboard.down('Shift');
    await press('ArrowRight', 'ArrowUp');
    await page.keyboard.up('Shift');
    assert.deepEqual(await chosenWindow(), [rows + 1, rows + 2]);
    assert.match(await page.$eval('.heat-cell', (element) => element.textContent), /^\d\d:.* – .* · .+/);
    await press(' ');
    assert.deepEqual(await chosenWindow(), [rows + 1, 2 * rows + 1]);
    const sum = await page.evaluate(() => window.otlpprof.nodes()[0].totals[0]);
    const chosen = naive.selected(LIST, { type: 0, window: [rows + 1, 2 * rows + 1] });
    assert.equal(sum, chosen.reduce((total, { value }) => total + value, 0));
    await press('End', 'Enter');
    assert.deepEqual(await chosenWindow(), [times.count - 1, times.count]);
    await press('Home', 'Enter');
    assert.deepEqual(await chosenWindow(), [0, 1]);
    await press('Escape');
    assert.equal(await chosenWindow(), null);
    await press('Escape');
    assert.equal(await page.evaluate(() => document.activeElement.className), '');
    await press('h');
    assert.equal(await page.$eval('.heatmap', (element) => element.hidden), true);
  });
});

test('a link reproduces the view in a new page', async () => {
  const text = labelled().text();
  let hash;
  let expected;
  const view = (page) =>
    page.evaluate(() => ({
      nodes: window.otlpprof.nodes(),
      zoom: window.otlpprof.zoom,
      matches: window.otlpprof.matches(),
      theme: document.documentElement.dataset.theme,
      flame: window.otlpprof.app.state.flame,
      table:
        (window.otlpprof.app.table.show(window.otlpprof.app.model, window.otlpprof.app.state),
        document.querySelector('.rows').textContent),
    }));
  for (const changes of [
    {
      type: 'alloc',
      labels: { endpoint: ['endpoint-1', 'endpoint-2'] },
      window: [3, 17],
      search: 'run|\\$',
      theme: 'dark',
      flame: true,
      colour: 'package',
      sort: 'total',
      filters: [{ keep: false, name: FRAMES[5].name }],
    },
    { view: 'inverted', onlyMatches: true, search: 'java' },
    { sandwich: FRAMES[2].name },
    { view: 'order', thread: 2 },
  ]) {
    await withPage(browser, text, {}, async (page) => {
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
    await withPage(browser, text, { hash }, async (page) => {
      assert.deepEqual(await view(page), expected);
    });
  }
});

test('light and dark follow the system until the switch is used', async () => {
  for (const isDark of [false, true]) {
    await withPage(browser, tenStacks().text(), { isDark }, async (page) => {
      const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const before = await background();
      assert.equal(before, isDark ? 'rgb(20, 23, 28)' : 'rgb(246, 247, 249)');
      await page.keyboard.press('d');
      assert.notEqual(await background(), before);
    });
  }
});
