// Values and pixels of the page in headless Chromium.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { Browser } from './support/browser.mjs';
import { samples, tenStacks, TYPES, writerOf } from './support/generate.mjs';
import * as naive from './support/naive.mjs';
import { FRAMES, labelled, LIST, withPage } from './support/opened.mjs';
import { random } from './support/random.mjs';
import { ProfileWriter } from './support/writer.mjs';

let browser;

before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

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
  return [...totals]
    .map(([path, values]) => [
      path
        .split(' ')
        .map((frame) => FRAMES[frame].name)
        .join(';'),
      values.slice(0, sides),
    ])
    .sort((left, right) => (left[0] < right[0] ? -1 : 1));
}

test('the values of each view equal the plain sums, node by node', async () => {
  await withPage(browser, labelled().text(), {}, async (page) => {
    const nodes = (index = 0) => page.evaluate((at) => window.otlpprof.nodes(at), index);
    const set = (changes) => page.evaluate((state) => window.otlpprof.set(state), changes);
    const cpu = naive.selected(LIST, { type: 0 });
    assert.deepEqual(pagePaths(await nodes()), naivePaths(naive.topDown(cpu)));
    await set({ type: 'live-heap', window: [2, 20], labels: { endpoint: ['endpoint-3', 'endpoint-4'] } });
    const heap = naive.selected(LIST, {
      type: 2,
      isSnapshot: true,
      window: [2, 20],
      labels: { endpoint: ['endpoint-3', 'endpoint-4'] },
    });
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
      assert.deepEqual(
        [self[0], total[0]],
        [expected.self.get(frame)?.[0] ?? 0, expected.total.get(frame)[0]],
      );
    }
  });
});

test('a changed value and swapped sides make the comparison fail', async () => {
  const list = samples({ seed: 72, count: 300, sides: 2 });
  const diff = { sideNames: ['base', 'new'] };
  const check = (changed) =>
    withPage(browser, writerOf(changed, FRAMES, diff).text(), {}, async (page) => {
      assert.deepEqual(
        pagePaths(await page.evaluate(() => window.otlpprof.nodes())),
        naivePaths(naive.topDown(list), 2),
      );
    });
  await check(list);
  const lost = list.map((sample, index) =>
    index === 17 ? { ...sample, value: sample.value + 1 } : sample,
  );
  await assert.rejects(check(lost), assert.AssertionError);
  const swapped = list.map((sample) => ({ ...sample, side: 1 - sample.side }));
  await assert.rejects(check(swapped), assert.AssertionError);
});

test('a comparison has the width and the change of its mode, and elided nodes by a switch', async () => {
  const list = samples({ seed: 75, count: 500, sides: 2 });
  const seconds = [20, 50];
  const header = { sideNames: ['base', 'new'], sideSeconds: seconds };
  const sums = [0, 1].map((side) =>
    list.filter((row) => row.side === side).reduce((sum, { value }) => sum + value, 0),
  );
  const factors = {
    share: sums.map((sum) => 1 / sum),
    seconds: seconds.map((number) => 1 / number),
    raw: [1, 1],
  };
  await withPage(browser, writerOf(list, FRAMES, header).text(), {}, async (page) => {
    const nodes = await page.evaluate(() => window.otlpprof.nodes());
    const width = await page.evaluate(() => window.otlpprof.width);
    for (const [diffMode, [base, next]] of Object.entries(factors)) {
      for (const [diffWidth, weights] of Object.entries({
        new: [0, next],
        base: [base, 0],
        both: [base, next],
      })) {
        await page.evaluate((state) => window.otlpprof.set(state), { diffMode, diffWidth });
        const widths = await page.evaluate(
          (count) => Array.from({ length: count }, (_, node) => window.otlpprof.boxOf(node).width),
          nodes.length,
        );
        const weighted = ({ totals }) => totals[0] * weights[0] + totals[1] * weights[1];
        nodes.forEach((node, index) => {
          assert.ok(Math.abs(widths[index] - (weighted(node) / weighted(nodes[0])) * width) <= 1);
        });
      }
    }
    const fills = await page.evaluate(() => {
      const { app } = window.otlpprof;
      return [-1, -0.2, 0, 0.2, 1].map((change) => app.palette.change(change, -1));
    });
    assert.equal(new Set(fills).size, fills.length);
    const elided = async (key) => {
      await page.evaluate((state) => window.otlpprof.set({ elided: state }), key);
      return pagePaths(await page.evaluate(() => window.otlpprof.nodes()));
    };
    assert.deepEqual(await elided(true), naivePaths(naive.elided(list), 2));
    assert.deepEqual(await elided(false), naivePaths(naive.topDown(list), 2));
  });
});

test('1,000 random nodes: the middle pixel answers with the node, the width is the share', async () => {
  const list = samples({ seed: 73, count: 4000, depth: 30 });
  await withPage(browser, writerOf(list, FRAMES).text(), {}, async (page) => {
    for (const flame of [false, true]) {
      await page.evaluate((state) => window.otlpprof.set({ flame: state }), flame);
      const nodes = await page.evaluate(() => window.otlpprof.nodes());
      const next = random(74);
      const chosen = Array.from({ length: 1000 }, () => 1 + Math.floor(next() * (nodes.length - 1)));
      const found = await page.evaluate(
        (list) =>
          list.map((node) => {
            const { otlpprof } = window;
            otlpprof.reveal(node);
            const box = otlpprof.boxOf(node);
            return { ...box, hit: otlpprof.nodeAt(box.left + box.width / 2, box.top + box.height / 2) };
          }),
        chosen,
      );
      const width = await page.evaluate(() => window.otlpprof.width);
      found.forEach((box, index) => {
        const node = chosen[index];
        assert.equal(box.hit, node);
        assert.ok(Math.abs(box.width - (nodes[node].totals[0] / nodes[0].totals[0]) * width) <= 1);
      });
      const isWide = ({ totals }) => (totals[0] / nodes[0].totals[0]) * width >= 5;
      const allWide = [...nodes.keys()].filter((node) => node > 0 && isWide(nodes[node]));
      assert.ok(allWide.length > 50, `${allWide.length}`);
      const wide = allWide.filter((_, index) => index % Math.ceil(allWide.length / 50) === 0);
      const colours = await page.evaluate(pixelsAndFills, wide);
      colours.forEach(([pixel, fill], index) => assert.equal(pixel, fill, nodes[wide[index]].name));
      for (const node of wide.slice(0, 20)) {
        const { left, top, width: wideness } = await page.evaluate((own) => {
          window.otlpprof.reveal(own);
          return window.otlpprof.boxOf(own);
        }, node);
        await page.mouse.move(left + wideness / 2, top + 10);
        assert.equal(await page.$eval('.tooltip strong', (name) => name.textContent), nodes[node].name);
      }
    }
  });
});

/** Runs in the page: for each node the pixel above the middle of its text, and the colour of its frame. */
function pixelsAndFills(nodes) {
  const { app } = window.otlpprof;
  const canvas = document.querySelector('canvas.flame');
  const area = canvas.getBoundingClientRect();
  const scratch = document.createElement('canvas').getContext('2d');
  const pixel = (context, x, y) => [...context.getImageData(x, y, 1, 1).data].join();
  return nodes.map((node) => {
    window.otlpprof.reveal(node);
    app.render();
    const { left, top, width } = window.otlpprof.boxOf(node);
    scratch.fillStyle = app.palette.frame(app.pane.graphs[0].tree.frame[node]);
    scratch.fillRect(0, 0, 1, 1);
    const middle = Math.floor(left - area.left + width / 2);
    return [
      pixel(canvas.getContext('2d'), middle, Math.round(top - area.top) + 2),
      pixel(scratch, 0, 0),
    ];
  });
}

test('a stack 8,192 frames deep is drawn down to its end', async () => {
  const writer = new ProfileWriter({ types: [TYPES[0]] });
  writer.add(Array(8192).fill(writer.frame('com.example.Deep.again')), 5);
  await withPage(browser, writer.text(), {}, async (page) => {
    for (const view of ['main', 'inverted']) {
      const hit = await page.evaluate(async (own) => {
        const { otlpprof } = window;
        otlpprof.set({ view: own });
        otlpprof.reveal(8192);
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        const { left, top } = otlpprof.boxOf(8192);
        const canvas = document.querySelector('canvas.flame');
        const area = canvas.getBoundingClientRect();
        const pixel = canvas.getContext('2d').getImageData(300, top - area.top + 2, 1, 1).data;
        return [otlpprof.nodeAt(left + 300, top + 5), top > area.top && top < area.bottom, pixel.join()];
      }, view);
      assert.deepEqual(hit.slice(0, 2), [8192, true]);
      assert.notEqual(hit[2], '255,255,255,255');
    }
  });
});

test('pixels of a box have its colour, and a box that matches another', async () => {
  await withPage(browser, tenStacks().text(), {}, async (page) => {
    const colour = (name) =>
      page.evaluate((wanted) => {
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
