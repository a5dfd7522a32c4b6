// Sums of steps over longer parts of time, for the strip and the heat map.

/**
 * The value of each of `count` parts of the time. `partOf(step)` is the part of a step. States are never
 * added up over time: of a snapshot type each part has its last step with a value.
 */
export function sumsOfParts(stepSums, count, partOf, isSnapshot) {
  const sums = new Float64Array(count);
  for (let step = 0; step < stepSums.length; step++) {
    const part = partOf(step);
    if (!isSnapshot) {
      sums[part] += stepSums[step];
    } else if (stepSums[step] > 0) {
      sums[part] = stepSums[step];
    }
  }
  return sums;
}
