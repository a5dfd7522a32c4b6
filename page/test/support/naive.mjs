// The values of every view, computed from plain samples stack by stack, without trees, columns or sums of the
// page. Results are maps from a path of frames, joined by " ", to the values of both sides.

function add(map, key, side, value) {
  if (!map.has(key)) {
    map.set(key, [0, 0]);
  }
  map.get(key)[side] += value;
}

/**
 * The samples of a selection. `labels`: `{ key: [value or null] }`; of a snapshot the last steps of its
 * series.
 */
export function selected(list, { type = 0, labels = {}, window = null, isSnapshot = false }) {
  const isIn = ({ time }) => window === null || (time >= window[0] && time < window[1]);
  let rows = list.filter((sample) => sample.type === type && isIn(sample));
  if (isSnapshot) {
    const last = new Map();
    for (const { series, side, time } of rows) {
      const key = `${series} ${side}`;
      last.set(key, Math.max(last.get(key) ?? -1, time));
    }
    rows = rows.filter(({ series, side, time }) => last.get(`${series} ${side}`) === time);
  }
  return rows.filter((sample) =>
    Object.entries(labels).every(([key, values]) => values.includes(sample.labels[key] ?? null)),
  );
}

/** The samples whose stacks pass all filters: `{ keep, frame }`. */
export function filtered(list, filters) {
  return list.filter(({ stack }) => filters.every(({ keep, frame }) => stack.includes(frame) === keep));
}

/** Totals of the nodes below the root. */
export function topDown(list) {
  const totals = new Map();
  for (const { stack, value, side } of list) {
    for (let length = 1; length <= stack.length; length++) {
      add(totals, stack.slice(0, length).join(' '), side, value);
    }
  }
  return totals;
}

export function selfValues(list) {
  const self = new Map();
  for (const { stack, value, side } of list) {
    add(self, stack.join(' '), side, value);
  }
  return self;
}

/** Totals of the inverted tree: paths from the sampled function to its callers. */
export function inverted(list) {
  return topDown(list.map((sample) => ({ ...sample, stack: sample.stack.slice().reverse() })));
}

/** Totals of the callers of a function, seen from its outermost call. The path begins behind the function. */
export function callers(list, frame) {
  const cut = list
    .filter(({ stack }) => stack.includes(frame))
    .map((sample) => ({ ...sample, stack: sample.stack.slice(0, sample.stack.indexOf(frame)).reverse() }));
  return topDown(cut);
}

export function callees(list, frame) {
  const cut = list
    .filter(({ stack }) => stack.includes(frame))
    .map((sample) => ({ ...sample, stack: sample.stack.slice(sample.stack.indexOf(frame) + 1) }));
  return topDown(cut);
}

/** Self and total of each function. A recursive function counts once. */
export function functions(list) {
  const self = new Map();
  const total = new Map();
  for (const { stack, value, side } of list) {
    add(self, stack[stack.length - 1], side, value);
    for (const frame of new Set(stack)) {
      add(total, frame, side, value);
    }
  }
  return { self, total };
}

/** The sum of the samples with a frame that the expression matches. */
export function matching(list, frames, regex) {
  return list
    .filter(({ stack }) => stack.some((frame) => regex.test(frames[frame].name)))
    .reduce((sum, { value }) => sum + value, 0);
}

/** The paths that exist on the base side alone, with their totals there. */
export function elided(list) {
  const totals = topDown(list);
  const gone = new Set(
    [...totals].filter(([, [base, next]]) => base > 0 && next === 0).map(([path]) => path),
  );
  const kept = list.filter(({ stack, side }) => side === 0 && gone.has(stack.join(' ')));
  return topDown(kept);
}
