// The stacks of each thread below the thread's name: another tree of the same rows.

import { arrayFor } from './arrays.js';
import { KIND_THREAD } from './profile.js';
import { Tree } from './tree.js';

/** The nodes of a thread's stacks, as they are met in the order of the profile's tree. */
class ThreadNodes {
  constructor(tree) {
    this.tree = tree;
    /** The number of the visit that met a node last. */
    this.metBy = new Int32Array(tree.count);
    this.visit = 0;
    this.path = new Int32Array(tree.depth);
  }

  /** Calls `meet` with each node of a stack that this visit has not met, callers first. */
  meetPath(node, meet) {
    const { metBy, visit, path, tree } = this;
    let length = 0;
    for (let at = node; at > 0 && metBy[at] !== visit; at = tree.parent[at]) {
      metBy[at] = visit;
      path[length++] = at;
    }
    while (length > 0) {
      meet(path[--length]);
    }
  }
}

/** The rows of each thread, in the order of their nodes: thread T has `rows[starts[T]..starts[T + 1]]`. */
function rowsOfThreads(profile, { count, set }) {
  const { threadLabel, setValues, labels } = profile;
  const threadOf = (row) => setValues[(set ? set[row] : 0) * labels.length + threadLabel];
  const starts = new Uint32Array(labels[threadLabel].values.length + 2);
  for (let row = 0; row < count; row++) {
    starts[threadOf(row) + 1]++;
  }
  for (let thread = 1; thread < starts.length; thread++) {
    starts[thread] += starts[thread - 1];
  }
  const next = starts.slice();
  const rows = new Uint32Array(count);
  for (let row = 0; row < count; row++) {
    rows[next[threadOf(row)]++] = row;
  }
  return { starts, rows };
}

/**
 * The profile with the tree and the rows of a type by thread: the name of the thread is the root of each
 * stack. The profile must have threads.
 */
export function byThread(profile, type) {
  const { tree } = profile;
  const rows = profile.rows(type);
  const ofThreads = rowsOfThreads(profile, rows);
  const threads = ofThreads.starts.length - 1;
  const nodes = new ThreadNodes(tree);
  /** Calls `begin` with each thread that has rows, `meet` with its nodes, and `take` with its rows. */
  const visit = (begin, meet, take) => {
    for (let thread = 0; thread < threads; thread++) {
      const [from, to] = [ofThreads.starts[thread], ofThreads.starts[thread + 1]];
      if (from < to) {
        nodes.visit++;
        begin(thread);
      }
      for (let at = from; at < to; at++) {
        const row = ofThreads.rows[at];
        nodes.meetPath(rows.node[row], meet);
        take(row);
      }
    }
  };
  let count = 1;
  const add = () => count++;
  visit(add, add, () => {});
  const level = arrayFor(tree.depth + 1, count);
  const frame = arrayFor(profile.frames, count);
  const placed = new Int32Array(tree.count);
  const node = new Int32Array(rows.count);
  let place = 0;
  let root = 0;
  visit(
    (thread) => {
      root = ++place;
      level[place] = 1;
      frame[place] = profile.threadFrame(thread);
    },
    (of) => {
      placed[of] = ++place;
      level[place] = tree.level[of] + 1;
      frame[place] = tree.frame[of];
    },
    (row) => (node[row] = rows.node[row] === 0 ? root : placed[rows.node[row]]),
  );
  const own = Object.create(profile);
  own.tree = new Tree(level, frame);
  own.usedKinds = new Set([...profile.usedKinds, KIND_THREAD]);
  const ownRows = { ...rows, node };
  own.rows = () => ownRows;
  return own;
}
