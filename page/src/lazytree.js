// A tree that is built where it is looked at: the children of a node exist once the node is wide enough to
// show them. A node merges many entries, which are nodes of the profile's tree.

import { arrayFor } from './arrays.js';
import { Tree } from './tree.js';

export class LazyTree {
  /**
   * `source` is the profile's tree, `sums` its prefix sums (one array a side), `frames` the number of frames,
   * `rootFrame` the frame of node 0.
   */
  constructor(source, sums, frames, rootFrame) {
    this.source = source;
    this.sums = sums;
    this.frame = [rootFrame];
    this.level = [0];
    this.levels = 1;
    this.parent = [-1];
    this.from = [0];
    this.to = [0];
    /** -1: the node is not expanded yet. */
    this.firstChild = [-1];
    this.children = [0];
    this.totals = sums.map(() => [0]);
    /** Scratch: the group of each frame during one expansion. */
    this.groupOfFrame = new Int32Array(frames).fill(-1);
  }

  get count() {
    return this.frame.length;
  }

  /** The node's width under the weights of the sides. */
  width(node, weights) {
    let width = 0;
    for (let side = 0; side < weights.length; side++) {
      width += weights[side] * this.totals[side][node];
    }
    return width;
  }

  /**
   * Adds the children of a node. `groups` has `{ frame, from, to, totals }` for each child. The widest comes
   * first.
   */
  addChildren(node, groups) {
    const sum = (group) => group.totals.reduce((left, right) => left + right, 0);
    groups.sort((left, right) => sum(right) - sum(left) || left.frame - right.frame);
    this.firstChild[node] = this.count;
    this.children[node] = groups.length;
    this.levels = Math.max(this.levels, this.level[node] + 2);
    for (const group of groups) {
      this.frame.push(group.frame);
      this.level.push(this.level[node] + 1);
      this.parent.push(node);
      this.from.push(group.from);
      this.to.push(group.to);
      this.firstChild.push(-1);
      this.children.push(0);
      group.totals.forEach((total, side) => this.totals[side].push(total));
    }
  }

  /** Expands the nodes at and below `node` that are at least `threshold` wide. */
  expandVisible(node, threshold, weights) {
    const open = [node];
    while (open.length > 0) {
      const at = open.pop();
      const width = this.width(at, weights);
      if (width <= 0 || width < threshold) {
        continue;
      }
      if (this.firstChild[at] === -1) {
        this.expand(at);
      }
      for (let child = 0; child < this.children[at]; child++) {
        open.push(this.firstChild[at] + child);
      }
    }
  }

  /** The nodes so far in pre-order, with sums for each side, and the number here of each node there. */
  flatten() {
    const count = this.count;
    const level = arrayFor(this.levels, count);
    const frame = new Uint32Array(count);
    const ids = new Int32Array(count);
    const sums = this.sums.map(() => new Float64Array(count + 1));
    const open = [0];
    let written = 0;
    while (open.length > 0) {
      const node = open.pop();
      level[written] = this.level[node];
      frame[written] = this.frame[node];
      ids[written] = node;
      const first = this.firstChild[node];
      const last = first === -1 ? -2 : first + this.children[node] - 1;
      for (let side = 0; side < sums.length; side++) {
        const totals = this.totals[side];
        let own = totals[node];
        for (let child = first; child <= last; child++) {
          own -= totals[child];
        }
        sums[side][written + 1] = sums[side][written] + own;
      }
      for (let child = last; child >= first; child--) {
        open.push(child);
      }
      written++;
    }
    return { tree: new Tree(level, frame), sums, ids };
  }
}
