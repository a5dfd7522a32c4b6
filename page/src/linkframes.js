// Frames of a link by their names, so that the link holds on a page of other data too.
//
// The text of a frame is its name. Kind and detail follow, `NAME|KIND|DETAIL`, where several frames have
// the name. A long text is replaced by `*` and a hash of all three. A path is texts from the root on: in
// `A;B*3;C` the frame B repeats three times.

import { hash32 } from './hash.js';
import { KIND_NAMES } from './profile.js';

/** A path, and the text of one frame, have at most this many letters in a link. */
const MOST_LETTERS = 2000;
const MOST_OF_FRAME = 400;
/** The frames of a path at most. */
const DEEPEST = 65535;

/** The letters that separate texts, in a name. */
const escaped = (text) => text.replace(/[%*;|]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
const unescaped = (text) => text.replace(/%(25|2a|3b|7c)/g, (code) => decodeURIComponent(code));

/** Parameters as a fragment. Letters that a fragment may have, and that names have often, stay readable. */
export function fragmentOf(parameters) {
  return parameters.toString().replace(/%(24|2C|2F|3A|3B)/g, decodeURIComponent);
}

function lettersOf(text) {
  return fragmentOf(new URLSearchParams([['', text]])).length - 1;
}

export class LinkFrames {
  constructor(profile) {
    this.profile = profile;
    /** The frames of names that a link had, or was to have. */
    this.ofNames = new Map();
    this.ofHashes = null;
  }

  #named(name) {
    const known = this.ofNames.get(name) ?? this.profile.named(name);
    this.ofNames.set(name, known);
    return known;
  }

  /** The text of a frame. */
  text(frame) {
    const text = this.#wholeText(frame);
    return lettersOf(text) > MOST_OF_FRAME ? this.#hash(frame) : text;
  }

  #wholeText(frame) {
    const parts = this.#parts(frame);
    return (this.#named(parts[0]).length === 1 ? parts.slice(0, 1) : parts).map(escaped).join('|');
  }

  #parts(frame) {
    const { profile } = this;
    return [profile.name(frame), KIND_NAMES[profile.kinds[frame]] ?? '', profile.detail(frame)];
  }

  #hash(frame) {
    return `*${hash32(this.#parts(frame).join('\n')).toString(36)}`;
  }

  /** The frames that a text may mean, those first that it means most likely; none if there are none. */
  frames(text) {
    if (text.startsWith('*')) {
      return this.#hashes().get(text) ?? [];
    }
    const [name, kind, detail] = text.split('|').map(unescaped);
    const { profile } = this;
    const found = this.#named(name);
    const differences = (frame) =>
      (KIND_NAMES[profile.kinds[frame]] === kind ? 0 : 2) + (profile.detail(frame) === detail ? 0 : 1);
    return kind === undefined
      ? found
      : found.slice().sort((left, right) => differences(left) - differences(right) || left - right);
  }

  /** The frames of each hash. */
  #hashes() {
    if (!this.ofHashes) {
      this.ofHashes = new Map();
      for (let frame = 0; frame < this.profile.frames; frame++) {
        const key = this.#hash(frame);
        const known = this.ofHashes.get(key);
        if (known) {
          known.push(frame);
        } else {
          this.ofHashes.set(key, [frame]);
        }
      }
    }
    return this.ofHashes;
  }

  /**
   * A path as a parameter of the link, `[KIND, TEXT]`. `name` is the path from the root on. `end` is the end
   * of a path that is too long, where no other node of the tree has that end. Otherwise a path that is too
   * long consists of hashes, as many as fit. Without a tree the path is not one of the profile's tree.
   */
  encodePath(path, tree) {
    const runs = runsOf(path);
    const texts = runs.map(([frame, times]) => this.text(frame) + repeated(times));
    if (fittingTexts(texts) === texts.length) {
      return ['name', texts.join(';')];
    }
    if (tree) {
      const end = texts.slice(texts.length - fittingTexts(texts.slice().reverse()));
      if (nodesWithEnd(tree, this.#candidates(end.join(';')), 2).length === 1) {
        return ['end', end.join(';')];
      }
    }
    const hashes = runs.map(([frame, times]) => this.#hash(frame) + repeated(times));
    return ['name', hashes.slice(0, fittingTexts(hashes)).join(';')];
  }

  /** The frames of a path in a link. A path of the tree ends where the tree has no such node. */
  decodePath(kind, text, tree) {
    const candidates = this.#candidates(text);
    if (kind === 'end') {
      const [node] = tree ? nodesWithEnd(tree, candidates, 1) : [];
      return node === undefined ? [] : tree.path(node).map((at) => tree.frame[at]);
    }
    const path = [];
    let node = 0;
    for (const frames of candidates) {
      const children = tree ? frames.map((frame) => tree.child(node, frame)) : [];
      node = children.find((child) => child !== -1);
      if (frames.length === 0 || (tree && node === undefined)) {
        break;
      }
      path.push(tree ? tree.frame[node] : frames[0]);
    }
    return path;
  }

  /** For each frame of a path the frames that its text may mean. */
  #candidates(text) {
    const found = [];
    for (const part of text.split(';')) {
      const [, frame, times] = part.match(/^(\*?[^*]*)(?:\*([0-9a-z]+))?/);
      const count = Math.min(times === undefined ? 1 : parseInt(times, 36), DEEPEST - found.length);
      const frames = this.frames(frame);
      for (let time = 0; time < count; time++) {
        found.push(frames);
      }
    }
    return found;
  }
}

const repeated = (times) => (times > 1 ? `*${times.toString(36)}` : '');

/** The frames of a path, each with the number of its calls in a row. */
function runsOf(path) {
  const runs = [];
  for (const frame of path) {
    const last = runs[runs.length - 1];
    if (last?.[0] === frame) {
      last[1]++;
    } else {
      runs.push([frame, 1]);
    }
  }
  return runs;
}

/** How many of the texts fit into a link, from the first on. */
function fittingTexts(texts) {
  let letters = 0;
  let count = 0;
  while (count < texts.length) {
    letters += lettersOf(texts[count]) + 1;
    if (letters > MOST_LETTERS) {
      break;
    }
    count++;
  }
  return count;
}

/** The first nodes, at most `most`, whose path ends with frames of these lists. */
function nodesWithEnd(tree, candidates, most) {
  const found = [];
  const last = new Set(candidates[candidates.length - 1]);
  for (let node = 1; node < tree.count && found.length < most; node++) {
    if (!last.has(tree.frame[node]) || tree.level[node] < candidates.length) {
      continue;
    }
    let at = node;
    let place = candidates.length - 1;
    while (place >= 0 && candidates[place].includes(tree.frame[at])) {
      at = tree.parent[at];
      place--;
    }
    if (place < 0) {
      found.push(node);
    }
  }
  return found;
}
