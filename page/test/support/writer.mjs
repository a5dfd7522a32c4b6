// A writer of the page's data, by the description of the format in page/README.md. It shares no code with the
// page's decoder.

import { deflateSync } from 'node:zlib';

/** Bytes that grow. */
class Bytes {
  constructor() {
    this.buffer = Buffer.alloc(1 << 16);
    this.length = 0;
  }

  byte(value) {
    if (this.length === this.buffer.length) {
      this.buffer = Buffer.concat([this.buffer, Buffer.alloc(this.buffer.length)]);
    }
    this.buffer[this.length++] = value;
  }

  varint(value) {
    while (value >= 128) {
      this.byte((value % 128) + 128);
      value = Math.floor(value / 128);
    }
    this.byte(value);
  }

  done() {
    return this.buffer.subarray(0, this.length);
  }
}

export class ProfileWriter {
  /**
   * `types`: as in the header. `labels`: keys. `times`: as in the header, or null. `sideNames` and
   * `sideSeconds` make a diff, which begins with `comparison`. `kinds` has the tables of the header, the code
   * of a frame, and the role of a set of labels: `{ rules, codeOf(frame), roleOf(values) }`.
   */
  constructor({
    title = 'test',
    types,
    labels = [],
    times = null,
    sideNames,
    sideSeconds,
    comparison,
    notes = [],
    selection = '',
    isSplit = false,
    kinds = null,
  }) {
    this.kinds = kinds;
    /** Writes the frames of nodes as two sections: low bytes and the rest. */
    this.isSplit = isSplit;
    this.header = { title, producer: 'test', types, times, notes, selection, sides: sideNames ? 2 : 1 };
    if (sideNames) {
      Object.assign(this.header, { sideNames, sideSeconds: sideSeconds ?? [null, null], comparison });
    }
    if (kinds) {
      this.header.kinds = kinds.rules;
    }
    this.roles = [0];
    this.labels = labels.map((key) => ({ key, values: [], numbers: new Map() }));
    this.sets = new Map([[labels.map(() => 0).join(), 0]]);
    this.setValues = [labels.map(() => 0)];
    this.frames = [];
    this.frameNumbers = new Map();
    this.frameUses = [];
    this.details = [];
    this.children = new Map();
    this.nodeFrames = [-1];
    this.firstChild = [-1];
    this.nextSibling = [-1];
    this.rows = types.map(() => []);
  }

  frame(name, kind = 0, detail = '') {
    const key = `${kind}\n${detail}\n${name}`;
    let number = this.frameNumbers.get(key);
    if (number === undefined) {
      number = this.frames.length;
      this.frameNumbers.set(key, number);
      this.frames.push({ name, kind, detail });
      this.frameUses.push(0);
    }
    return number;
  }

  /** The number of a set of labels: `{ key: value }`. */
  set(values) {
    const row = this.labels.map((label) => {
      const value = values[label.key];
      if (value === undefined) {
        return 0;
      }
      if (!label.numbers.has(value)) {
        label.values.push(value);
        label.numbers.set(value, label.values.length);
      }
      return label.numbers.get(value);
    });
    const key = row.join();
    if (!this.sets.has(key)) {
      this.sets.set(key, this.setValues.length);
      this.setValues.push(row);
      this.roles.push(this.kinds?.roleOf(values) ?? 0);
    }
    return this.sets.get(key);
  }

  /** The child of a node with a frame. */
  child(node, frame) {
    const key = node * 2 ** 21 + frame;
    let child = this.children.get(key);
    if (child === undefined) {
      child = this.nodeFrames.length;
      this.children.set(key, child);
      this.nodeFrames.push(frame);
      this.frameUses[frame]++;
      this.firstChild.push(-1);
      this.nextSibling.push(this.firstChild[node]);
      this.firstChild[node] = child;
    }
    return child;
  }

  /** Adds a row of a type. `stack` has frame numbers, root first. */
  add(stack, value, { type = 0, set = 0, time = 0, side = 0, series = 0 } = {}) {
    let node = 0;
    for (const frame of stack) {
      node = this.child(node, frame);
    }
    this.rows[type].push([node, value, set, time, side, series]);
    return node;
  }

  /** The inflated bytes. */
  bytes() {
    const byUse = [...this.frames.keys()].sort(
      (left, right) => this.frameUses[right] - this.frameUses[left],
    );
    const frameOf = new Uint32Array(byUse.length);
    byUse.forEach((frame, number) => (frameOf[frame] = number));
    const sections = new Map();
    const section = (name) => {
      sections.set(name, new Bytes());
      return sections.get(name);
    };
    this.#writeFrames(section, byUse);
    const sets = section('label_sets');
    this.setValues.flat().forEach((value) => sets.varint(value));
    if (this.kinds) {
      const codes = section('frame_codes');
      byUse.forEach((frame) => codes.byte(this.kinds.codeOf(this.frames[frame])));
      const roles = section('set_roles');
      this.roles.forEach((role) => roles.byte(role));
    }
    const order = this.#writeNodes(section, frameOf);
    this.rows.forEach((rows, type) => this.#writeRows(section, rows, type, order));
    return this.#assemble(sections);
  }

  #writeFrames(section, byUse) {
    const lengths = section('frame_name_lengths');
    const names = section('frame_names');
    const kinds = section('frame_kinds');
    const details = section('frame_details');
    const texts = new Map();
    for (const frame of byUse) {
      const { name, kind, detail } = this.frames[frame];
      const bytes = Buffer.from(name, 'utf8');
      lengths.varint(bytes.length);
      bytes.forEach((byte) => names.byte(byte));
      kinds.byte(kind);
      if (detail !== '' && !texts.has(detail)) {
        texts.set(detail, texts.size + 1);
      }
      details.varint(texts.get(detail) ?? 0);
    }
    const detailLengths = section('detail_lengths');
    const detailTexts = section('details');
    for (const text of texts.keys()) {
      const bytes = Buffer.from(text, 'utf8');
      detailLengths.varint(bytes.length);
      bytes.forEach((byte) => detailTexts.byte(byte));
    }
  }

  /** Writes the nodes in pre-order; returns the pre-order number of each node. */
  #writeNodes(section, frameOf) {
    const pops = section('node_pops');
    const frames = section(this.isSplit ? 'node_frames_high' : 'node_frames');
    const low = this.isSplit ? section('node_frames_low') : null;
    const order = new Int32Array(this.nodeFrames.length);
    const open = [[0, 0]];
    let number = 0;
    let previous = -1;
    this.levels = 1;
    while (open.length > 0) {
      const [node, level] = open.pop();
      this.levels = Math.max(this.levels, level + 1);
      order[node] = number++;
      pops.varint(node === 0 ? 0 : previous + 1 - level);
      if (node !== 0) {
        const frame = frameOf[this.nodeFrames[node]];
        low?.byte(frame % 256);
        frames.varint(low ? Math.floor(frame / 256) : frame);
      }
      previous = level;
      for (let child = this.firstChild[node]; child !== -1; child = this.nextSibling[child]) {
        open.push([child, level + 1]);
      }
    }
    return order;
  }

  #writeRows(section, rows, type, order) {
    for (const row of rows) {
      row.order = order[row[0]];
    }
    rows.sort((left, right) => left.order - right.order);
    const nodes = section(`rows${type}_nodes`);
    const values = section(`rows${type}_values`);
    const isUsed = (column) => rows.some((row) => row[column] !== 0);
    const columns = [
      ['sets', 2],
      ['times', 3],
      ['series', 5],
    ]
      .filter(([, column]) => isUsed(column))
      .map(([name, column]) => [section(`rows${type}_${name}`), column]);
    const sides = this.header.sides === 2 ? section(`rows${type}_sides`) : null;
    let before = 0;
    for (const row of rows) {
      nodes.varint(row.order - before);
      before = row.order;
      values.varint(row[1]);
      columns.forEach(([out, column]) => out.varint(row[column]));
      sides?.byte(row[4]);
    }
  }

  #assemble(sections) {
    const places = {};
    const parts = [];
    let offset = 0;
    for (const [name, bytes] of sections) {
      places[name] = [offset, bytes.length];
      parts.push(bytes.done());
      offset += bytes.length;
    }
    const header = Buffer.from(
      JSON.stringify({
        ...this.header,
        labels: this.labels.map(({ key, values }) => ({ key, values })),
        labelSets: this.setValues.length,
        frames: this.frames.length,
        nodes: this.nodeFrames.length,
        levels: this.levels,
        rows: this.rows.map((rows) => rows.length),
        sections: places,
      }),
    );
    const head = Buffer.alloc(9);
    head.write('OTPP', 'latin1');
    head[4] = 1;
    head.writeUInt32LE(header.length, 5);
    return Buffer.concat([head, header, ...parts]);
  }

  /** The text of the page's element. */
  text() {
    return deflateSync(this.bytes()).toString('base64');
  }
}
