// Boxes of levels: pixels and back.

import assert from 'node:assert/strict';
import test from 'node:test';
import { boxesOfLevel, deepestLevel, nodeAtPosition, PartBoxes } from '../src/boxes.js';
import { samples, someFrames, writerOf } from './support/generate.mjs';
import { modelOf, open } from './support/open.mjs';

async function graphOf(options) {
  const profile = await open(writerOf(samples(options), someFrames(40)));
  return modelOf(profile).graphs()[0];
}

for (const pixels of [7, 90, 1000, 100_000]) {
  test(`${pixels} pixels show every box of a pixel or more, and each pixel with a narrower one`, async () => {
    const { tree, widths } = await graphOf({ seed: 61, count: 2000 });
    const zoomed = tree.levelNodes[tree.levelStart[1]];
    for (const node of [0, zoomed]) {
      const begin = widths[node];
      const end = widths[tree.end[node]];
      const scale = pixels / (end - begin);
      for (let level = 1; level < tree.depth; level++) {
        const drawn = [];
        boxesOfLevel(tree, widths, level, begin, end, pixels, (...box) => drawn.push(box));
        assert.ok(drawn.length <= 3 * pixels + 2);
        const kept = new PartBoxes(tree, widths, begin, end, pixels);
        assert.deepEqual(kept.ofLevel(level), drawn.flat());
        assert.equal(kept.ofLevel(level), kept.ofLevel(level));
        const shown = new Set(drawn.map(([own]) => own));
        const painted = new Set(drawn.map(([, left]) => Math.floor(left)));
        for (let other = 0; other < tree.count; other++) {
          const width = (widths[tree.end[other]] - widths[other]) * scale;
          const left = (widths[other] - begin) * scale;
          const isIn =
            tree.level[other] === level && widths[other] >= begin && widths[tree.end[other]] <= end;
          if (isIn && width >= 1) {
            assert.ok(shown.has(other));
          } else if (isIn && width > 0) {
            const isCovered =
              painted.has(Math.floor(left)) ||
              drawn.some(([, from, wide]) => from <= left && left < from + Math.max(1, wide));
            assert.ok(isCovered, `node ${other}`);
          }
        }
        drawn.forEach(([own, left, width]) => {
          assert.equal(left, (widths[own] - begin) * scale);
          assert.equal(width, (widths[tree.end[own]] - widths[own]) * scale);
        });
      }
    }
  });
}

test('the middle of every box is its node', async () => {
  const { tree, widths } = await graphOf({ seed: 62, count: 1000 });
  for (let node = 1; node < tree.count; node++) {
    const middle = (widths[node] + widths[tree.end[node]]) / 2;
    assert.equal(nodeAtPosition(tree, widths, tree.level[node], middle), node);
  }
  assert.equal(nodeAtPosition(tree, widths, 1, widths.at(-1) + 1), -1);
});

test('the deepest level below a node has a value', async () => {
  const { tree, widths } = await graphOf({ seed: 63, count: 300 });
  // Half of the nodes lose their values, as under a selection.
  const sums = widths.map((_, node) => (node > tree.count / 2 ? widths[tree.count >> 1] : widths[node]));
  for (let node = 0; node < tree.count; node++) {
    let deepest = tree.level[node];
    for (let other = node; other < tree.end[node]; other++) {
      if (sums[tree.end[other]] > sums[other]) {
        deepest = Math.max(deepest, tree.level[other]);
      }
    }
    assert.equal(deepestLevel(tree, sums, node), deepest);
  }
});
