// Callers, merged: the inverted view of a whole profile, and the upper half of a sandwich.

import { LazyTree } from './lazytree.js';

class Callers extends LazyTree {
  /**
   * `origins`: the nodes whose values are shown. `isWhole`: an origin counts with its total, not its self
   * value. `beginsAtOrigins`: the root's children are the origins' own frames, not their callers.
   */
  constructor(source, sums, frames, rootFrame, { origins, isWhole, beginsAtOrigins }) {
    super(source, sums, frames, rootFrame);
    this.origins = origins;
    /** The node that an entry has reached on its way to the root. */
    this.cursors = origins.slice();
    this.isWhole = isWhole;
    this.beginsAtOrigins = beginsAtOrigins;
    this.to[0] = origins.length;
    for (let side = 0; side < sums.length; side++) {
      let total = 0;
      for (const origin of origins) {
        total += this.value(origin, side);
      }
      this.totals[side][0] = total;
    }
  }

  value(origin, side) {
    const sums = this.sums[side];
    return sums[this.isWhole ? this.source.end[origin] : origin + 1] - sums[origin];
  }

  /** Sorts the node's entries by their next caller, in place. Each child has a part of the node's entries. */
  expand(node) {
    const { source, origins, cursors, groupOfFrame } = this;
    const from = this.from[node];
    const to = this.to[node];
    const moves = !(node === 0 && this.beginsAtOrigins);
    const groups = [];
    const groupOfEntry = new Int32Array(to - from);
    for (let entry = from; entry < to; entry++) {
      const next = moves ? source.parent[cursors[entry]] : cursors[entry];
      if (next <= 0) {
        groupOfEntry[entry - from] = -1;
        continue;
      }
      const frame = source.frame[next];
      let group = groupOfFrame[frame];
      if (group === -1) {
        group = groups.length;
        groupOfFrame[frame] = group;
        groups.push({ frame, entries: 0, from: 0, to: 0, totals: this.sums.map(() => 0) });
      }
      groupOfEntry[entry - from] = group;
      groups[group].entries++;
      for (let side = 0; side < this.sums.length; side++) {
        groups[group].totals[side] += this.value(origins[entry], side);
      }
    }
    let place = from;
    for (const group of groups) {
      groupOfFrame[group.frame] = -1;
      group.from = place;
      group.to = place;
      place += group.entries;
    }
    const oldOrigins = origins.slice(from, to);
    const oldCursors = cursors.slice(from, to);
    for (let entry = 0; entry < oldOrigins.length; entry++) {
      const own = groupOfEntry[entry];
      const at = own === -1 ? place++ : groups[own].to++;
      origins[at] = oldOrigins[entry];
      cursors[at] = moves ? source.parent[oldCursors[entry]] : oldCursors[entry];
    }
    this.addChildren(node, groups);
  }
}

/** The inverted tree: below the root the functions with a self value, below each its callers. */
export function invertedTree(tree, sums, frames) {
  const origins = new Int32Array(tree.count);
  let count = 0;
  for (let node = 1; node < tree.count; node++) {
    if (sums.some((ofSide) => ofSide[node + 1] > ofSide[node])) {
      origins[count++] = node;
    }
  }
  const options = { origins: origins.slice(0, count), isWhole: false, beginsAtOrigins: true };
  return new Callers(tree, sums, frames, 0, options);
}

/** The callers of a function. `nodes` are its outermost calls: see `outermostCalls`. */
export function callersTree(tree, sums, frames, frame, nodes) {
  return new Callers(tree, sums, frames, frame, { origins: nodes, isWhole: true, beginsAtOrigins: false });
}

/** The calls of a frame that are not nested in another call of the frame and have a value on some side. */
export function outermostCalls(tree, sums, frame) {
  const found = [];
  let node = 1;
  while (node < tree.count) {
    if (tree.frame[node] === frame) {
      if (sums.some((ofSide) => ofSide[tree.end[node]] > ofSide[node])) {
        found.push(node);
      }
      node = tree.end[node];
    } else {
      node++;
    }
  }
  return Int32Array.from(found);
}
