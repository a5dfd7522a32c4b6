// Self values of a type under a choice of labels and a window of time.

/** The label sets that the choice admits. `chosen` maps a label's index to a set of value numbers. */
export function admittedSets(profile, chosen, exceptLabel = -1) {
  const width = profile.labels.length;
  const admitted = new Uint8Array(profile.labelSets).fill(1);
  for (const [label, values] of chosen) {
    if (label === exceptLabel || values.size === 0) {
      continue;
    }
    for (let set = 0; set < profile.labelSets; set++) {
      if (!values.has(profile.setValues[set * width + label])) {
        admitted[set] = 0;
      }
    }
  }
  return admitted;
}

/**
 * For a snapshot type: the last step within the window of each series and side. States are never added up
 * over time. A choice of labels does not move the last step: an object that is gone by then is gone.
 */
function lastSteps(rows, from, to) {
  let series = 0;
  for (let row = 0; rows.series && row < rows.count; row++) {
    series = Math.max(series, rows.series[row]);
  }
  const last = new Int32Array((series + 1) * 2).fill(-1);
  for (let row = 0; row < rows.count; row++) {
    const time = rows.time ? rows.time[row] : 0;
    const key = seriesKey(rows, row);
    if (time >= from && time < to && time > last[key]) {
      last[key] = time;
    }
  }
  return last;
}

function seriesKey(rows, row) {
  return (rows.series ? rows.series[row] : 0) * 2 + (rows.side ? rows.side[row] : 0);
}

/**
 * Sums the rows of a type.
 *
 * `self` has the self values of each node, one array for each side of the profile. `setSums` has the sum of
 * each label set in the window, whatever labels are chosen. `stepSums` has the sum of each step of time under
 * the chosen labels, whatever the window. `vmRows` has the rows of threads of the VM, of each side.
 */
export function select(profile, type, chosen, window) {
  const rows = profile.rows(type);
  const steps = profile.times ? profile.times.count : 1;
  const [from, to] = window ?? [0, steps];
  const admitted = admittedSets(profile, chosen);
  const self = [];
  const vmRows = [];
  for (let side = 0; side < profile.sides; side++) {
    self.push(new Float64Array(profile.tree.count));
    vmRows.push([]);
  }
  const setSums = new Float64Array(profile.labelSets);
  const stepSums = new Float64Array(steps);
  const last = profile.types[type].snapshot ? lastSteps(rows, from, to) : null;
  const { node, value, set, time, side } = rows;
  for (let row = 0; row < rows.count; row++) {
    const ofSet = set ? set[row] : 0;
    const step = time ? time[row] : 0;
    const isAdmitted = admitted[ofSet] === 1;
    if (isAdmitted) {
      stepSums[step] += value[row];
    }
    if (step < from || step >= to || (last && last[seriesKey(rows, row)] !== step)) {
      continue;
    }
    setSums[ofSet] += value[row];
    if (isAdmitted) {
      const ofSide = side ? side[row] : 0;
      self[ofSide][node[row]] += value[row];
      if (profile.setRoles[ofSet] !== 0) {
        vmRows[ofSide].push(row);
      }
    }
  }
  return { self, setSums, stepSums, vmRows };
}

/**
 * The sum of each value of a label, given the choice of all other labels. Index 0: rows without the label.
 */
export function labelSums(profile, setSums, chosen, label) {
  const width = profile.labels.length;
  const admitted = admittedSets(profile, chosen, label);
  const sums = new Float64Array(profile.labels[label].values.length + 1);
  for (let set = 0; set < profile.labelSets; set++) {
    if (admitted[set]) {
      sums[profile.setValues[set * width + label]] += setSums[set];
    }
  }
  return sums;
}
