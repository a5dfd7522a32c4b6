// Towers: the parts of a tree at and below the outermost nodes whose frame is in a set. Nested matches belong
// to the tower that contains them, so that sums count every value once.

import { totalOf } from './tree.js';

/** Sets the self values outside the towers to 0. `matches[frame]` is 1 for the frames of the set. */
export function keepTowers(tree, self, matches) {
  const { frame, end, count } = tree;
  let node = 0;
  while (node < count) {
    if (node > 0 && matches[frame[node]]) {
      node = end[node];
    } else {
      for (const values of self) {
        values[node] = 0;
      }
      node++;
    }
  }
}

/** Sets the self values within the towers to 0. */
export function removeTowers(tree, self, matches) {
  const { frame, end, count } = tree;
  let node = 1;
  while (node < count) {
    if (matches[frame[node]]) {
      for (const values of self) {
        values.fill(0, node, end[node]);
      }
      node = end[node];
    } else {
      node++;
    }
  }
}

/** The outermost matching nodes with a value, in pre-order. */
export function towers(tree, sums, matches) {
  const { frame, end, count } = tree;
  const found = [];
  let node = 1;
  while (node < count) {
    if (matches[frame[node]]) {
      if (sums[end[node]] > sums[node]) {
        found.push(node);
      }
      node = end[node];
    } else {
      node++;
    }
  }
  return Int32Array.from(found);
}

/** The sum and number of the towers with a value. */
export function towerSum(tree, sums, matches) {
  const { frame, end, count } = tree;
  let sum = 0;
  let number = 0;
  let node = 1;
  while (node < count) {
    if (matches[frame[node]]) {
      const total = totalOf(tree, sums, node);
      sum += total;
      number += total > 0 ? 1 : 0;
      node = end[node];
    } else {
      node++;
    }
  }
  return { sum, number };
}

/**
 * Self and total of each function, in the part of the tree at and below `top`. A recursive function counts
 * once in its total.
 */
export function functionSums(tree, sums, frames, top = 0) {
  const { frame, end } = tree;
  const self = new Float64Array(frames);
  const total = new Float64Array(frames);
  // The end of the outermost call of each frame: nodes before that end are nested calls.
  const outermostEnd = new Int32Array(frames);
  for (let node = Math.max(1, top); node < end[top]; node++) {
    const own = frame[node];
    const begin = sums[node];
    self[own] += sums[node + 1] - begin;
    if (node >= outermostEnd[own]) {
      outermostEnd[own] = end[node];
      total[own] += sums[end[node]] - begin;
    }
  }
  return { self, total };
}
