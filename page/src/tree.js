// A tree in pre-order: every node's descendants follow the node directly.

/**
 * The shape of a tree, without values. Node 0 is the root.
 *
 * - `level[node]`: 0 for the root
 * - `frame[node]`: the frame's number; of the root without meaning
 * - `end[node]`: the first node behind the node's descendants
 * - `parent[node]`: -1 for the root
 * - `levelNodes`, `levelStart`: the nodes of level L in pre-order are
 *   `levelNodes[levelStart[L]] .. levelNodes[levelStart[L + 1]]`
 */
export class Tree {
  constructor(level, frame) {
    const count = level.length;
    this.count = count;
    this.level = level;
    this.frame = frame;
    this.end = new Int32Array(count);
    this.parent = new Int32Array(count);
    let deepest = 0;
    for (let node = 0; node < count; node++) {
      if (level[node] > deepest) {
        deepest = level[node];
      }
    }
    /** The number of levels. */
    this.depth = deepest + 1;
    this.#connect();
    this.#listLevels();
  }

  /** Sets `end` and `parent`. The open nodes are the path from the root to the node before. */
  #connect() {
    const { count, level, end, parent } = this;
    const open = new Int32Array(this.depth + 1);
    let previous = -1;
    for (let node = 0; node < count; node++) {
      const own = level[node];
      for (let closed = previous; closed >= own; closed--) {
        end[open[closed]] = node;
      }
      open[own] = node;
      parent[node] = own === 0 ? -1 : open[own - 1];
      previous = own;
    }
    for (let closed = previous; closed >= 0; closed--) {
      end[open[closed]] = count;
    }
  }

  /** Sorts the nodes by level, by counting. */
  #listLevels() {
    const { count, level, depth } = this;
    const start = new Int32Array(depth + 1);
    for (let node = 0; node < count; node++) {
      start[level[node] + 1]++;
    }
    for (let at = 0; at < depth; at++) {
      start[at + 1] += start[at];
    }
    const next = start.slice();
    const nodes = new Int32Array(count);
    for (let node = 0; node < count; node++) {
      nodes[next[level[node]]++] = node;
    }
    this.levelStart = start;
    this.levelNodes = nodes;
  }

  /** The node and its ancestors, from the root's child to the node. */
  path(node) {
    const nodes = [];
    for (let at = node; at > 0; at = this.parent[at]) {
      nodes.push(at);
    }
    return nodes.reverse();
  }

  /** The child of the node with the frame, or -1. */
  child(node, frame) {
    for (let at = node + 1; at < this.end[node]; at = this.end[at]) {
      if (this.frame[at] === frame) {
        return at;
      }
    }
    return -1;
  }
}

/**
 * Sums of self values before each node, in pre-order: `sums[node]` is where the node's box begins,
 * `sums[end[node]] - sums[node]` is the node's total, `sums[node + 1] - sums[node]` the self value.
 */
export function prefixSums(self) {
  const sums = new Float64Array(self.length + 1);
  let sum = 0;
  for (let node = 0; node < self.length; node++) {
    sum += self[node];
    sums[node + 1] = sum;
  }
  return sums;
}

/** The total of a node. */
export function totalOf(tree, sums, node) {
  return sums[tree.end[node]] - sums[node];
}
