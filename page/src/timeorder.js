// Time order of a thread: the stacks of each step of time beside each other, as a tree whose widths are time.

import { Tree } from './tree.js';

/** The frame of a gap: time in which the thread has no value. */
export const GAP = -1;

/**
 * Builds the tree of one value of a label, such as a thread. Each step of the window is equally wide; the
 * step with the largest sum fills its width. `keeps(node)` tells whether a filter leaves the node's value.
 *
 * `valueOfStep` is the width of a step, in the type's unit. Node 0 is the root; `frames` of gaps are GAP.
 */
export function timeOrder(profile, type, admitted, window, keeps) {
  const rows = profile.rows(type);
  const [from, to] = window;
  const { tree } = profile;
  const byStep = Array.from({ length: to - from }, () => []);
  for (let row = 0; row < rows.count; row++) {
    const step = rows.time ? rows.time[row] : 0;
    const isIn =
      step >= from && step < to && admitted[rows.set ? rows.set[row] : 0] && keeps(rows.node[row]);
    if (isIn && rows.value[row] > 0) {
      byStep[step - from].push(row);
    }
  }
  const stepSum = (step) => step.reduce((sum, row) => sum + rows.value[row], 0);
  const valueOfStep = byStep.reduce((most, step) => Math.max(most, stepSum(step)), 0);
  const level = [0];
  const frame = [0];
  const self = [0];
  // The nodes on the path of the stack before, below the root.
  let path = [];
  const append = (nodes, value) => {
    let common = 0;
    while (common < nodes.length && common < path.length && path[common] === nodes[common]) {
      common++;
    }
    // A value at an inner node of the path is self time after its children: it needs a box of its own.
    if (common === nodes.length && path.length > common) {
      common--;
    }
    for (let at = common; at < nodes.length; at++) {
      level.push(at + 1);
      frame.push(nodes[at] === GAP ? GAP : tree.frame[nodes[at]]);
      self.push(0);
    }
    self[self.length - 1] += value;
    path = nodes;
  };
  for (const step of byStep) {
    for (const row of step) {
      append(tree.path(rows.node[row]), rows.value[row]);
    }
    const gap = valueOfStep - stepSum(step);
    if (gap > 0) {
      append([GAP], gap);
    }
  }
  return {
    tree: new Tree(Uint16Array.from(level), Int32Array.from(frame)),
    self: Float64Array.from(self),
    valueOfStep,
  };
}
