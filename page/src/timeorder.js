// Time order of a thread: its samples one after the other, as a tree whose widths are time.

import { arrayFor } from './arrays.js';
import { TIME_UNITS } from './format.js';
import { Tree } from './tree.js';

/** The frame of a place without a box: idle time, or self time behind a callee. */
export const BLANK = -1;

/** A gap shorter than this part of a step is not shown: times are no finer than steps. */
const SHORTEST_GAP = 0.1;

/** The rows of a window, by time. Rows of one step are in the order of their stacks. */
function rowsInOrder(rows, admitted, [from, to], keeps) {
  const found = [];
  for (let row = 0; row < rows.count; row++) {
    const step = rows.time ? rows.time[row] : 0;
    if (step < from || step >= to || rows.value[row] <= 0) {
      continue;
    }
    if (admitted[rows.set ? rows.set[row] : 0] && keeps(rows.node[row])) {
      found.push(row);
    }
  }
  return rows.time
    ? found.sort((left, right) => rows.time[left] - rows.time[right] || left - right)
    : found;
}

/** The steps with rows: `{ begin, rows, sum }`, where `begin` is the number of the step in the window. */
function slotsOf(rows, order, from) {
  const slots = [];
  for (const row of order) {
    const begin = (rows.time ? rows.time[row] : 0) - from;
    if (slots.length === 0 || slots[slots.length - 1].begin !== begin) {
      slots.push({ begin, rows: [], sum: 0 });
    }
    const slot = slots[slots.length - 1];
    slot.rows.push(row);
    slot.sum += rows.value[row];
  }
  return slots;
}

function median(numbers) {
  const sorted = Float64Array.from(numbers).sort();
  return sorted.length === 0 ? 1 : sorted[sorted.length >> 1];
}

/**
 * Sets where each slot ends, in steps. A sum of time lasts that time, another value as long as the slots are
 * mostly apart. Both last until the next slot at most. A gap is closed that is no longer than one sample.
 */
function stretch(slots, count, unit, stepMs, smallest) {
  const valueOfStep = unit in TIME_UNITS ? (stepMs * 1e6) / TIME_UNITS[unit] : 0;
  const apart = median(slots.slice(1).map(({ begin }, at) => begin - slots[at].begin));
  const lasting = (value) => (valueOfStep > 0 ? value / valueOfStep : apart);
  const shortest = Math.max(lasting(smallest), SHORTEST_GAP);
  slots.forEach((slot, at) => {
    const next = at + 1 < slots.length ? slots[at + 1].begin : count;
    const end = slot.begin + lasting(slot.sum);
    slot.end = end + shortest >= next ? next : end;
  });
}

/** Appends stacks from left to right. Neighbours share the boxes of the frames that they begin with. */
class OrderBuilder {
  constructor(tree) {
    this.source = tree;
    this.level = [0];
    this.levels = 1;
    this.frame = [0];
    this.self = [0];
    this.length = [0];
    /** The nodes of the stack before, from the root's child on. */
    this.path = [];
  }

  append(nodes, value, length) {
    const { path } = this;
    let common = 0;
    while (common < nodes.length && common < path.length && path[common] === nodes[common]) {
      common++;
    }
    // Behind a callee, self time needs a place of its own below its function.
    const isBehind = common === nodes.length && path.length > common;
    this.path = isBehind ? [...nodes, BLANK] : nodes;
    for (let at = isBehind && path[common] === BLANK ? common + 1 : common; at < this.path.length; at++) {
      this.level.push(at + 1);
      this.levels = Math.max(this.levels, at + 2);
      this.frame.push(this.path[at] === BLANK ? BLANK : this.source.frame[this.path[at]]);
      this.self.push(0);
      this.length.push(0);
    }
    const last = this.self.length - 1;
    this.self[last] += value;
    this.length[last] += length;
  }
}

/**
 * The time order of the rows that are admitted by their label sets and by `keeps(node)`. `lengths` are the
 * widths of nodes without their children, in steps; `self` are the values. Node 0 is the root.
 */
export function timeOrder(profile, type, admitted, window, keeps) {
  const { tree, times } = profile;
  const rows = profile.rows(type);
  const count = window[1] - window[0];
  const order = rowsInOrder(rows, admitted, window, keeps);
  const slots = slotsOf(rows, order, window[0]);
  const smallest = order.reduce((least, row) => Math.min(least, rows.value[row]), Infinity);
  stretch(slots, count, profile.types[type].unit, times ? times.stepMs : 1, smallest);
  const builder = new OrderBuilder(tree);
  let reached = 0;
  for (const slot of slots) {
    if (slot.begin > reached) {
      builder.append([BLANK], 0, slot.begin - reached);
    }
    for (const row of slot.rows) {
      const value = rows.value[row];
      builder.append(tree.path(rows.node[row]), value, ((slot.end - slot.begin) * value) / slot.sum);
    }
    reached = slot.end;
  }
  if (reached < count) {
    builder.append([BLANK], 0, count - reached);
  }
  const level = arrayFor(builder.levels, builder.level.length);
  level.set(builder.level);
  return {
    tree: new Tree(level, Int32Array.from(builder.frame)),
    self: Float64Array.from(builder.self),
    lengths: Float64Array.from(builder.length),
  };
}
