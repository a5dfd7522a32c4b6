// The view as the fragment of a link, and back. Functions and threads are there by their names.

import { fragmentOf, LinkFrames } from './linkframes.js';

/** The view of a page that was just opened. The command chooses the roots, and how sides are compared. */
export function initialState(profile) {
  return {
    type: 0,
    labels: new Map(),
    window: null,
    search: '',
    onlyMatches: false,
    /** `main`, `inverted`, `sandwich` or `order` (time order of a thread). */
    view: 'main',
    /** The frame of the sandwich, or -1. */
    sandwich: -1,
    /** The value number of the thread in time order. */
    thread: 0,
    /** Whether the name of the thread is the root of each stack. */
    threads: profile.header?.byThread === true,
    flame: false,
    /** Focused and removed frames in order: `{ keep: bool, frame }`. */
    filters: [],
    /** The frames from below the root to the zoomed node. */
    zoom: [],
    /** In time order, where a frame may have several boxes in a row: the zoomed node. */
    zoomNode: 0,
    /** In a sandwich: whether the zoomed node is in the upper half. */
    zoomInCallers: false,
    colour: profile.sides === 2 ? 'change' : 'kind',
    minPercent: 0,
    sort: 'self',
    ascending: false,
    theme: 'auto',
    /** `both`, `graph` or `table`. */
    panes: 'both',
    heatMap: false,
    diffMode: CHOICES.diffMode.find((mode) => mode === profile.header?.comparison) ?? 'share',
    diffWidth: 'new',
    elided: false,
  };
}

const CHOICES = {
  view: ['main', 'inverted', 'sandwich', 'order'],
  colour: ['kind', 'package', 'change'],
  sort: ['name', 'self', 'total', 'baseSelf', 'baseTotal', 'changeSelf', 'changeTotal'],
  theme: ['auto', 'light', 'dark'],
  panes: ['both', 'graph', 'table'],
  diffMode: ['share', 'seconds', 'raw'],
  diffWidth: ['new', 'base', 'both'],
};
const FLAGS = ['onlyMatches', 'threads', 'flame', 'zoomInCallers', 'ascending', 'heatMap', 'elided'];
const NUMBERS = ['minPercent', 'zoomNode'];
/** In links of older pages these were numbers, which stand for the same frames on the same page alone. */
const OLD_NUMBERS = ['sandwich', 'thread'];

/** The frames of each profile by name. */
const framesOfProfiles = new WeakMap();

function framesOf(profile) {
  let frames = framesOfProfiles.get(profile);
  if (!frames) {
    frames = new LinkFrames(profile);
    framesOfProfiles.set(profile, frames);
  }
  return frames;
}

/** The tree of the zoom, which is a path of the profile's tree in the top-down view alone. */
function zoomTree(state, treeOf) {
  return state.view === 'main' ? treeOf(state) : null;
}

/** The fragment without `#`; "" for the view of a page that was just opened. `treeOf` has a state's tree. */
export function encodeState(profile, state, treeOf = () => profile.tree) {
  const initial = initialState(profile);
  const parts = new URLSearchParams();
  if (state.type !== 0) {
    parts.set('type', profile.types[state.type].name);
  }
  for (const [label, values] of [...state.labels].sort((left, right) => left[0] - right[0])) {
    const { key, values: names } = profile.labels[label];
    for (const value of [...values].sort((left, right) => left - right)) {
      parts.append(value === 0 ? `without.${key}` : `label.${key}`, value === 0 ? '' : names[value - 1]);
    }
  }
  if (state.window) {
    parts.set('window', state.window.join('-'));
  }
  if (state.search !== '') {
    parts.set('search', state.search);
  }
  for (const { keep, frame } of state.filters) {
    parts.append(keep ? 'focus.name' : 'remove.name', framesOf(profile).text(frame));
  }
  if (state.zoom.length > 0) {
    const [kind, text] = framesOf(profile).encodePath(state.zoom, zoomTree(state, treeOf));
    parts.set(`zoom.${kind}`, text);
  }
  if (state.sandwich !== -1) {
    parts.set('sandwich.name', framesOf(profile).text(state.sandwich));
  }
  if (state.thread > 0 && profile.threadLabel !== -1) {
    parts.set('thread.name', profile.labels[profile.threadLabel].values[state.thread - 1] ?? '');
  }
  for (const name of [...Object.keys(CHOICES), ...NUMBERS]) {
    if (state[name] !== initial[name]) {
      parts.set(name, state[name]);
    }
  }
  for (const name of FLAGS) {
    if (state[name] !== initial[name]) {
      parts.set(name, state[name] ? '1' : '0');
    }
  }
  return fragmentOf(parts);
}

/** The zoom of a link of an older page: frames in base 36, a frame that repeats once, with its number. */
function expand(text, frames) {
  const out = [];
  for (const part of text.split('.')) {
    const [frame, times] = part.split('*').map((number) => parseInt(number, 36));
    if (!(frame >= 0 && frame < frames)) {
      return [];
    }
    for (let time = 0; time < Math.min(times ?? 1, 65535); time++) {
      out.push(frame);
    }
  }
  return out;
}

/** The state of a fragment. A part that the profile lacks is ignored. `treeOf` has a state's tree. */
export function decodeState(profile, fragment, treeOf = () => profile.tree) {
  const state = initialState(profile);
  const parts = new URLSearchParams(fragment);
  const type = profile.types.findIndex(({ name }) => name === parts.get('type'));
  state.type = Math.max(0, type);
  const isFrame = (frame) => Number.isInteger(frame) && frame >= 0 && frame < profile.frames;
  for (const [name, text] of parts) {
    if (name.startsWith('label.') || name.startsWith('without.')) {
      readLabel(profile, state, name, text);
    } else if (/^(focus|remove)(\.name)?$/.test(name)) {
      const frame = name.endsWith('.name') ? framesOf(profile).frames(text)[0] : Number(text);
      if (isFrame(frame)) {
        state.filters.push({ keep: name.startsWith('focus'), frame });
      }
    } else if (CHOICES[name]?.includes(text)) {
      state[name] = text;
    } else if (FLAGS.includes(name)) {
      state[name] = text === '1';
    } else if ([...NUMBERS, ...OLD_NUMBERS].includes(name) && Number.isFinite(Number(text))) {
      state[name] = Number(text);
    }
  }
  state.search = parts.get('search') ?? '';
  state.window = readWindow(profile, parts.get('window'));
  if (parts.has('sandwich.name')) {
    state.sandwich = framesOf(profile).frames(parts.get('sandwich.name'))[0] ?? -1;
  }
  if (parts.has('thread.name')) {
    const threads = profile.labels[profile.threadLabel]?.values ?? [];
    state.thread = threads.indexOf(parts.get('thread.name')) + 1;
  }
  if (state.view === 'sandwich' && !isFrame(state.sandwich)) {
    state.view = 'main';
  }
  if (!isFrame(state.sandwich)) {
    state.sandwich = -1;
  }
  state.zoom = readZoom(profile, parts, () => zoomTree(state, treeOf));
  return state;
}

function readZoom(profile, parts, tree) {
  for (const kind of ['name', 'end']) {
    const text = parts.get(`zoom.${kind}`);
    if (text !== null) {
      return framesOf(profile).decodePath(kind, text, tree());
    }
  }
  return parts.has('zoom') ? expand(parts.get('zoom'), profile.frames) : [];
}

function readLabel(profile, state, name, text) {
  const key = name.slice(name.indexOf('.') + 1);
  const label = profile.labels.findIndex((candidate) => candidate.key === key);
  if (label === -1) {
    return;
  }
  const value = name.startsWith('without.') ? 0 : profile.labels[label].values.indexOf(text) + 1;
  if (value === 0 && !name.startsWith('without.')) {
    return;
  }
  if (!state.labels.has(label)) {
    state.labels.set(label, new Set());
  }
  state.labels.get(label).add(value);
}

function readWindow(profile, text) {
  const [from, to] = (text ?? '').split('-').map(Number);
  const isValid =
    profile.times &&
    Number.isInteger(from) &&
    Number.isInteger(to) &&
    from >= 0 &&
    from < to &&
    to <= profile.times.count;
  return isValid ? [from, to] : null;
}
