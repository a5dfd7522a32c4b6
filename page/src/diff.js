// Comparison of two sides: weights, widths and change.

export const BASE = 0;
export const NEW = 1;

/**
 * The factors that make both sides comparable, from the sides' totals and profiled seconds.
 *
 * - `share`: each side's total is 1
 * - `seconds`: values per second; without the seconds of both sides the same as `raw`
 * - `raw`: values as they are
 */
export function sideFactors(mode, totals, seconds) {
  const inverse = (number) => (number > 0 ? 1 / number : 0);
  if (mode === 'share') {
    return totals.map(inverse);
  }
  if (mode === 'seconds' && hasSeconds(seconds)) {
    return seconds.map(inverse);
  }
  return totals.map(() => 1);
}

export function hasSeconds(seconds) {
  return Array.isArray(seconds) && seconds.length === 2 && seconds.every((number) => number > 0);
}

/** The weights of the sides in a box's width: `new`, `base` or `both`. */
export function widthWeights(width, factors) {
  return [width === 'new' ? 0 : factors[BASE], width === 'base' ? 0 : factors[NEW]];
}

/** One array of sums from the sides' sums. */
export function weightedSums(sums, weights) {
  const used = weights
    .map((weight, side) => ({ weight, ofSide: sums[side] }))
    .filter(({ weight }) => weight > 0);
  if (used.length === 0) {
    return new Float64Array(sums[0].length);
  }
  if (used.length === 1 && used[0].weight === 1) {
    return used[0].ofSide;
  }
  const out = new Float64Array(sums[0].length);
  for (const { weight, ofSide } of used) {
    for (let node = 0; node < out.length; node++) {
      out[node] += weight * ofSide[node];
    }
  }
  return out;
}

/**
 * The change from base to new for the colour, from -1 (only on the base side) to 1 (only on the new side):
 * difference over sum of the weighted values.
 */
export function relativeChange(base, next) {
  const sum = base + next;
  return sum > 0 ? (next - base) / sum : 0;
}

/** The self values of the base side in nodes that the new side lacks, in place. The new side's become 0. */
export function keepElided(tree, sums, self) {
  for (let node = 0; node < tree.count; node++) {
    const isOnBoth = sums[NEW][tree.end[node]] > sums[NEW][node];
    if (isOnBoth) {
      self[BASE][node] = 0;
    }
    self[NEW][node] = 0;
  }
}
