// Callees, merged over all calls of a function: the lower half of a sandwich.

import { LazyTree } from './lazytree.js';

class Callees extends LazyTree {
  constructor(source, sums, frames, frame, nodes) {
    super(source, sums, frames, frame);
    /** The merged nodes of each node here. */
    this.entries = [nodes];
    for (let side = 0; side < sums.length; side++) {
      let total = 0;
      for (const node of nodes) {
        total += this.value(node, side);
      }
      this.totals[side][0] = total;
    }
  }

  value(node, side) {
    return this.sums[side][this.source.end[node]] - this.sums[side][node];
  }

  expand(node) {
    const { source, groupOfFrame } = this;
    const groups = [];
    const values = this.sums.map(() => 0);
    for (const entry of this.entries[node]) {
      const end = source.end[entry];
      for (let child = entry + 1; child < end; child = source.end[child]) {
        let isEmpty = true;
        for (let side = 0; side < values.length; side++) {
          values[side] = this.value(child, side);
          isEmpty &&= values[side] <= 0;
        }
        if (isEmpty) {
          continue;
        }
        const frame = source.frame[child];
        let group = groupOfFrame[frame];
        if (group === -1) {
          group = groups.length;
          groupOfFrame[frame] = group;
          groups.push({ frame, entries: [], from: 0, to: 0, totals: this.sums.map(() => 0) });
        }
        groups[group].entries.push(child);
        for (let side = 0; side < values.length; side++) {
          groups[group].totals[side] += values[side];
        }
      }
    }
    for (const group of groups) {
      groupOfFrame[group.frame] = -1;
    }
    this.addChildren(node, groups);
    for (const group of groups) {
      this.entries.push(group.entries);
    }
    this.entries[node] = null;
  }
}

/** The callees of a function. `nodes` are its outermost calls. */
export function calleesTree(tree, sums, frames, frame, nodes) {
  return new Callees(tree, sums, frames, frame, nodes);
}
