// The profile of the page: header and columns, decoded when they are needed.

import { arrayFor } from './arrays.js';
import { readVarints } from './varints.js';
import { Tree } from './tree.js';

const MAGIC = 'OTPP';
const VERSION = 1;
const HEADER_AT = 9;

export const KIND_JAVA = 0;
export const KIND_NATIVE = 1;
export const KIND_MARKER = 4;
/** The kind of the frames that stand for threads. The data has no such frame. */
export const KIND_THREAD = 6;
/** The kinds of frames, by number. */
export const KIND_NAMES = ['Java', 'native', 'kernel', 'VM code', 'marker', 'other', 'thread'];

/** The label whose values are threads, and the name in place of a thread's where there is none. */
const THREAD_KEY = 'thread.name';
const NO_THREAD = '[no_thread]';

/** Texts in one column of UTF-8, each cut out at its first use. */
class Texts {
  constructor(lengths, bytes) {
    this.count = lengths.length;
    this.bytes = bytes;
    this.offsets = new Uint32Array(lengths.length + 1);
    for (let index = 0; index < lengths.length; index++) {
      this.offsets[index + 1] = this.offsets[index] + lengths[index];
    }
    this.decoded = new Array(lengths.length);
    this.decoder = new TextDecoder();
    // A call of the decoder takes longer than a short text. In ASCII the offsets of bytes are those of
    // letters, so that one call is enough.
    const whole = this.decoder.decode(bytes);
    this.whole = whole.length === bytes.length ? whole : null;
  }

  /** The places of a text, in the order of the places. */
  places(text) {
    const { offsets, whole } = this;
    const { length } = new TextEncoder().encode(text);
    const found = [];
    for (let index = 0; index < this.count; index++) {
      // Most texts have other lengths, or need not be cut out.
      const hasLength = offsets[index + 1] - offsets[index] === length;
      if (hasLength && (whole ? whole.startsWith(text, offsets[index]) : this.get(index) === text)) {
        found.push(index);
      }
    }
    return found;
  }

  get(index) {
    const known = this.decoded[index];
    if (known !== undefined) {
      return known;
    }
    const [from, to] = [this.offsets[index], this.offsets[index + 1]];
    const text = this.whole?.slice(from, to) ?? this.decoder.decode(this.bytes.subarray(from, to));
    this.decoded[index] = text;
    return text;
  }
}

export class Profile {
  /** Reads inflated bytes: see the format's description in page/README.md. */
  constructor(bytes) {
    const magic = String.fromCharCode(...bytes.subarray(0, 4));
    if (magic !== MAGIC) {
      throw new Error('the data is no profile');
    }
    if (bytes[4] !== VERSION) {
      throw new Error(`the data has version ${bytes[4]}, the page reads version ${VERSION}`);
    }
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(5, true);
    this.header = JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_AT, HEADER_AT + length)));
    this.data = bytes.subarray(HEADER_AT + length);
    this.types = this.header.types;
    this.labels = this.header.labels ?? [];
    /** The label whose values are threads, or -1. */
    this.threadLabel = this.labels.findIndex(({ key }) => key === THREAD_KEY);
    const threads = this.threadLabel === -1 ? 0 : this.labels[this.threadLabel].values.length + 1;
    /** The number of frames: those of functions, then those that stand for threads. */
    this.frames = this.header.frames + threads;
    this.times = this.header.times ?? null;
    this.sides = this.header.sides ?? 1;
    this.rowsOfTypes = new Map();
    this.#readFrames();
    this.#readLabelSets();
    this.#readNodes();
  }

  /** A section's bytes, or null. */
  #section(name) {
    const place = this.header.sections[name];
    if (!place) {
      return null;
    }
    const [offset, length] = place;
    if (offset + length > this.data.length) {
      throw new Error(`section ${name} is cut off`);
    }
    return this.data.subarray(offset, offset + length);
  }

  #varints(name, out) {
    const bytes = this.#section(name);
    try {
      return bytes ? readVarints(bytes, out) : out;
    } catch (error) {
      throw new Error(`section ${name}: ${error.message}`);
    }
  }

  #texts(lengthsName, bytesName, count) {
    const lengths = this.#varints(lengthsName, new Uint32Array(count));
    return new Texts(lengths, this.#section(bytesName) ?? new Uint8Array(0));
  }

  #readFrames() {
    const count = this.header.frames;
    this.names = this.#texts('frame_name_lengths', 'frame_names', count);
    const kinds = this.#section('frame_kinds') ?? new Uint8Array(count);
    this.usedKinds = new Set(kinds);
    this.kinds = new Uint8Array(this.frames).fill(KIND_THREAD);
    this.kinds.set(kinds);
    this.frameDetails = new Uint32Array(this.frames);
    this.#varints('frame_details', this.frameDetails.subarray(0, count));
    const last = this.frameDetails.reduce((most, detail) => Math.max(most, detail), 0);
    const lengths = this.#section('detail_lengths') ? this.#countVarints('detail_lengths') : last;
    this.details = this.#texts('detail_lengths', 'details', lengths);
    this.frameCodes = new Uint8Array(this.frames);
    this.frameCodes.set(this.#section('frame_codes') ?? []);
  }

  /** The number of integers in a section: bytes without the continuation bit. */
  #countVarints(name) {
    return this.#section(name).reduce((count, byte) => count + (byte < 128 ? 1 : 0), 0);
  }

  #readLabelSets() {
    const width = this.labels.length;
    this.labelSets = Math.max(1, this.header.labelSets ?? 1);
    /** Value numbers, `labels.length` for each set. */
    this.setValues = this.#varints('label_sets', new Uint32Array(this.labelSets * width));
    /** The role of each set's threads. */
    this.setRoles = this.#section('set_roles') ?? new Uint8Array(this.labelSets);
  }

  #readNodes() {
    const count = this.header.nodes;
    const pops = this.#varints('node_pops', arrayFor(this.header.levels ?? Infinity, count));
    // The levels replace the pops in place.
    let level = 0;
    for (let node = 1; node < count; node++) {
      level = level + 1 - pops[node];
      if (level < 1) {
        throw new Error(`node ${node} has no parent`);
      }
      pops[node] = level;
    }
    pops[0] = 0;
    const frame = arrayFor(this.frames, count);
    this.#varints('node_frames', frame.subarray(1));
    const low = this.#section('node_frames_low');
    if (low) {
      if (low.length !== count - 1) {
        throw new Error(`section node_frames_low has ${low.length} bytes for ${count - 1} nodes`);
      }
      this.#varints('node_frames_high', frame.subarray(1));
      for (let node = 1; node < count; node++) {
        frame[node] = frame[node] * 256 + low[node - 1];
      }
    }
    for (let node = 1; node < count; node++) {
      if (frame[node] >= this.header.frames) {
        throw new Error(`node ${node} has frame ${frame[node]} of ${this.header.frames}`);
      }
    }
    this.tree = new Tree(pops, frame);
  }

  /** The columns of a type's rows: node, value, set, time, side, series. Absent columns are null. */
  rows(type) {
    let rows = this.rowsOfTypes.get(type);
    if (!rows) {
      rows = this.#readRows(type);
      this.rowsOfTypes.set(type, rows);
    }
    return rows;
  }

  #readRows(type) {
    const count = this.header.rows[type];
    const column = (name, make) =>
      this.#section(`rows${type}_${name}`) ? this.#varints(`rows${type}_${name}`, make()) : null;
    const node = this.#varints(`rows${type}_nodes`, new Int32Array(count));
    for (let row = 1; row < count; row++) {
      node[row] += node[row - 1];
    }
    if (count > 0 && node[count - 1] >= this.tree.count) {
      throw new Error(`a row of ${this.types[type].name} has a node that does not exist`);
    }
    return {
      count,
      node,
      value: this.#varints(`rows${type}_values`, new Float64Array(count)),
      set: column('sets', () => arrayFor(this.labelSets, count)),
      time: this.times ? column('times', () => arrayFor(this.times.count, count)) : null,
      side: this.sides === 2 ? this.#section(`rows${type}_sides`) : null,
      series: this.types[type].snapshot ? column('series', () => new Uint32Array(count)) : null,
    };
  }

  name(frame) {
    const thread = frame - this.header.frames;
    return thread < 0
      ? this.names.get(frame)
      : thread === 0
        ? NO_THREAD
        : this.labels[this.threadLabel].values[thread - 1];
  }

  /** The frames with a name: functions, the most frequent ones first, then threads. */
  named(name) {
    const frames = this.names.places(name);
    const threads = this.threadLabel === -1 ? [] : this.labels[this.threadLabel].values;
    [NO_THREAD, ...threads].forEach((thread, number) => {
      if (thread === name && number < this.frames - this.header.frames) {
        frames.push(this.threadFrame(number));
      }
    });
    return frames;
  }

  /** The frame that stands for a thread, by its value number; 0 is no thread. */
  threadFrame(thread) {
    return this.header.frames + thread;
  }

  isThread(frame) {
    return frame >= this.header.frames;
  }

  /** The place of a frame, such as `Main.java:12`, or the object of a native one; "" if unknown. */
  detail(frame) {
    const number = this.frameDetails[frame];
    return number === 0 ? '' : this.details.get(number - 1);
  }
}
