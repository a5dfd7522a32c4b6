// A written profile as the page's own modules read it, and its trees as maps of paths.

import { inflateText } from '../../src/inflate.js';
import { initialState } from '../../src/link.js';
import { Model } from '../../src/model.js';
import { Profile } from '../../src/profile.js';

export async function open(writer) {
  return new Profile(await inflateText(writer.text()));
}

/** A model under changes of the state that a page has when it is opened. */
export function modelOf(profile, changes = {}, pixels = 1000) {
  return new Model(profile).update({ ...initialState(profile), ...changes }, pixels);
}

/** The numbers of the frames in the profile, by their numbers in the samples. */
export function frameNumbers(profile, frames) {
  const numbers = new Map();
  for (let frame = 0; frame < profile.frames; frame++) {
    numbers.set(profile.name(frame), frame);
  }
  return frames.map(({ name }) => numbers.get(name));
}

/**
 * Totals (or self values) of the nodes of a graph that have a value, by path. `samplesOf` maps frames back.
 */
export function pathsOf(graph, samplesOf, isSelf = false) {
  const { tree, sums } = graph;
  const paths = new Map();
  for (let node = 1; node < tree.count; node++) {
    const values = sums.map((ofSide) => ofSide[isSelf ? node + 1 : tree.end[node]] - ofSide[node]);
    if (values.some((value) => value > 0)) {
      const path = tree
        .path(node)
        .map((at) => samplesOf(tree.frame[at]))
        .join(' ');
      if (paths.has(path)) {
        throw new Error(`path ${path} has two nodes`);
      }
      paths.set(path, values.length === 2 ? values : [values[0], 0]);
    }
  }
  return paths;
}

/** A map sorted by key, for comparisons. */
export function sorted(map) {
  return [...map].sort((left, right) => (left[0] < right[0] ? -1 : left[0] > right[0] ? 1 : 0));
}
