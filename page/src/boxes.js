// Boxes of a level of the tree: from sums to pixels and back.

/** A box narrower than this is drawn as one pixel, together with its neighbours in that pixel. */
export const NARROW_PIXELS = 0.5;

/**
 * The index in `levelNodes` of the first node of the level, from `fromIndex` on, whose box ends right of
 * `position`, or the level's end. Boxes of a level are in order, so that their right edges are sorted.
 */
export function firstEndingAfter(tree, sums, level, position, fromIndex = tree.levelStart[level]) {
  const { levelNodes, end } = tree;
  let low = fromIndex;
  let high = tree.levelStart[level + 1];
  // The wanted node is mostly near the first one: doubled steps, then halves of the last step.
  for (let step = 1; low + step < high; step *= 2) {
    if (sums[end[levelNodes[low + step]]] > position) {
      high = low + step;
      break;
    }
    low += step + 1;
  }
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sums[end[levelNodes[middle]]] > position) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/** The node of a level at a position on the scale of the sums, or -1. */
export function nodeAtPosition(tree, sums, level, position) {
  const index = firstEndingAfter(tree, sums, level, position);
  if (index === tree.levelStart[level + 1]) {
    return -1;
  }
  const node = tree.levelNodes[index];
  return sums[node] <= position ? node : -1;
}

/**
 * Calls `emit(node, left, width)`, in pixels, for the boxes of a level between the positions `begin` and
 * `end`, which `pixels` pixels show. The work follows the pixels, not the number of nodes: behind a narrow
 * box the next one is searched that ends behind the narrow box's pixel.
 */
export function boxesOfLevel(tree, sums, level, begin, end, pixels, emit) {
  const scale = pixels / (end - begin);
  const last = tree.levelStart[level + 1];
  let index = firstEndingAfter(tree, sums, level, begin);
  while (index < last) {
    const node = tree.levelNodes[index];
    const left = sums[node];
    if (left >= end) {
      return;
    }
    const right = sums[tree.end[node]];
    const width = (right - left) * scale;
    if (width >= NARROW_PIXELS) {
      emit(node, (left - begin) * scale, width);
      index++;
    } else if (width > 0) {
      const leftPixels = (left - begin) * scale;
      emit(node, leftPixels, width);
      const next = begin + (Math.floor(leftPixels) + 1) / scale;
      index = firstEndingAfter(tree, sums, level, Math.max(next, right), index + 1);
      continue;
    } else {
      index = firstEndingAfter(tree, sums, level, right, index + 1);
    }
  }
}

/** The boxes of a part of a graph. They are kept, as the search among millions of nodes takes time. */
export class PartBoxes {
  constructor(tree, sums, begin, end, pixels) {
    Object.assign(this, { tree, sums, begin, end, pixels });
    this.levels = new Map();
  }

  isOf(begin, end, pixels) {
    return this.begin === begin && this.end === end && this.pixels === pixels;
  }

  /** Node, left and width of each box of a level, one after the other. */
  ofLevel(level) {
    const known = this.levels.get(level);
    if (known) {
      return known;
    }
    const boxes = [];
    boxesOfLevel(this.tree, this.sums, level, this.begin, this.end, this.pixels, (node, left, width) =>
      boxes.push(node, left, width),
    );
    this.levels.set(level, boxes);
    return boxes;
  }
}

/** The deepest level with a value at or below the node. A level without one has none below either. */
export function deepestLevel(tree, sums, node) {
  const begin = sums[node];
  const end = sums[tree.end[node]];
  let level = tree.level[node];
  while (level + 1 < tree.depth) {
    const index = firstEndingAfter(tree, sums, level + 1, begin);
    if (index === tree.levelStart[level + 2] || sums[tree.levelNodes[index]] >= end) {
      return level;
    }
    level++;
  }
  return level;
}
