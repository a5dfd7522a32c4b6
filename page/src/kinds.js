// The kinds of code of a profile's samples, by the tables that the command has written.

/** Shares below this one, in percent, would be shown as zero. */
const LEAST_PERCENT = 0.05;

/** The code of each node's stack. A frame without a code, such as a thread's name, is none. */
export function stackCodes({ header, frameCodes }, tree) {
  const { calledBy } = header.kinds;
  const codes = new Uint8Array(tree.count);
  for (let node = 1; node < tree.count; node++) {
    codes[node] = calledBy[codes[tree.parent[node]]][frameCodes[tree.frame[node]]];
  }
  return codes;
}

/**
 * The sum of each kind. `self` are the values of the nodes on a side, `vmRows` the rows of threads of the VM
 * that are part of them: a row's kind depends on its thread's role. A node whose value is 0 was removed.
 */
export function kindSums({ header, setRoles }, codes, self, rows, vmRows) {
  const { names, ofRoles } = header.kinds;
  const sums = new Float64Array(names.length);
  for (let node = 0; node < codes.length; node++) {
    sums[ofRoles[0][codes[node]]] += self[node];
  }
  for (const row of vmRows) {
    const node = rows.node[row];
    if (self[node] !== 0) {
      sums[ofRoles[0][codes[node]]] -= rows.value[row];
      sums[ofRoles[setRoles[rows.set[row]]][codes[node]]] += rows.value[row];
    }
  }
  return sums;
}

/** The kinds that have a share which is not zero, each with it, as the command's reports show them. */
export function kindShares(names, sums, whole) {
  const percents = [...sums].map((sum) => (whole === 0 ? 0 : (sum * 100) / whole));
  const shown = [...percents.keys()].filter((kind) => percents[kind] >= LEAST_PERCENT);
  return shown.map((kind) => `${names[kind]} ${tenths(percents[kind])} %`);
}

/** With one digit behind the point. A number in the middle is rounded to an even digit, as by the command. */
function tenths(number) {
  // Of the numbers in the middle, a float can hold only numbers that end with .25 or .75.
  return (number % 1 === 0.25 ? number - 0.05 : number).toFixed(1);
}
