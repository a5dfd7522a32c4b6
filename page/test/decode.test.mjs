// Decoding: numbers, base64, columns, damage.

import assert from 'node:assert/strict';
import test from 'node:test';
import { deflateSync } from 'node:zlib';
import { decodeBase64, inflateText } from '../src/inflate.js';
import { KIND_THREAD, Profile } from '../src/profile.js';
import { readVarints } from '../src/varints.js';
import { samples, someFrames, tenStacks, TYPES, writerOf } from './support/generate.mjs';
import { open } from './support/open.mjs';
import { random } from './support/random.mjs';
import { ProfileWriter } from './support/writer.mjs';

test('numbers of every length are read', () => {
  const limits = [2 ** 49, 2 ** 53 - 1, 2 ** 53, 2 ** 55, 2 ** 56, 2 ** 63];
  const numbers = [0, 1, 127, 128, 300, 2 ** 28 - 1, 2 ** 31, 2 ** 35 + 5, ...limits];
  const bytes = numbers.flatMap((number) => {
    const out = [];
    let rest = BigInt(number);
    while (rest > 127n) {
      out.push(Number(rest & 127n) | 128);
      rest >>= 7n;
    }
    return [...out, Number(rest)];
  });
  assert.deepEqual([...readVarints(Uint8Array.from(bytes), new Float64Array(numbers.length))], numbers);
});

test('a section with too few or too many numbers is refused', () => {
  assert.throws(() => readVarints(Uint8Array.from([1, 128]), new Float64Array(2)), /does not end/);
  assert.throws(() => readVarints(Uint8Array.from([1]), new Float64Array(2)), /does not end/);
  assert.throws(() => readVarints(Uint8Array.from([1, 2]), new Float64Array(1)), /bytes/);
  assert.throws(() => readVarints(new Uint8Array(20).fill(255), new Float64Array(1)), /does not end/);
});

test('base64 is decoded as Node decodes it', () => {
  const next = random(3);
  for (let length = 0; length < 70; length++) {
    const bytes = Buffer.from(Array.from({ length }, () => Math.floor(next() * 256)));
    const text = bytes.toString('base64').replace(/=+$/, '');
    assert.deepEqual(Buffer.from(decodeBase64(text, 0, text.length)), bytes);
  }
  assert.throws(() => decodeBase64('ab*d', 0, 4), /letter 2/);
});

test('texts longer than a piece are inflated whole', async () => {
  const next = random(4);
  const bytes = Buffer.from(Array.from({ length: 3_000_001 }, () => Math.floor(next() * 256)));
  const text = ` ${deflateSync(bytes).toString('base64')}\n`;
  assert.ok(text.length > 3 << 20);
  assert.deepEqual(Buffer.from(await inflateText(text)), bytes);
});

test('names, kinds, details and labels are read', async () => {
  const writer = new ProfileWriter({ types: TYPES, labels: ['thread.name', 'region'] });
  const frames = [
    ['é.ü', 0, ''],
    ['日本', 1, 'libjvm.so'],
    ['', 4, ''],
    ['x', 2, 'x.c:3'],
    ['y', 3, 'libjvm.so'],
  ];
  const numbers = frames.map((frame) => writer.frame(...frame));
  writer.add(numbers, 2 ** 52 + 1, { set: writer.set({ region: 'a' }) });
  const profile = await open(writer);
  const read = [...Array(profile.frames).keys()].map((frame) => [
    profile.name(frame),
    profile.kinds[frame],
    profile.detail(frame),
  ]);
  // Threads have frames of their own.
  assert.deepEqual(read.sort(), [...frames, ['[no_thread]', KIND_THREAD, '']].sort());
  assert.deepEqual([...profile.setValues], [0, 0, 0, 1]);
  assert.equal(profile.rows(0).value[0], 2 ** 52 + 1);
  assert.equal(profile.rows(1).count, 0);
});

test('a stack 8,192 frames deep is read', async () => {
  const writer = new ProfileWriter({ types: TYPES });
  const frame = writer.frame('again');
  writer.add(Array(8192).fill(frame), 5);
  const profile = await open(writer);
  assert.equal(profile.tree.depth, 8193);
  assert.equal(profile.tree.path(8192).length, 8192);
});

test('the tree has the ends, parents and levels that its levels say', async () => {
  const profile = await open(writerOf(samples({ seed: 5, count: 500 }), someFrames(40)));
  const { tree } = profile;
  for (let node = 0; node < tree.count; node++) {
    let end = node + 1;
    while (end < tree.count && tree.level[end] > tree.level[node]) {
      end++;
    }
    let parent = node - 1;
    while (parent >= 0 && tree.level[parent] >= tree.level[node]) {
      parent--;
    }
    assert.equal(tree.end[node], end);
    assert.equal(tree.parent[node], parent);
    const ofLevel = tree.levelNodes.subarray(
      tree.levelStart[tree.level[node]],
      tree.levelStart[tree.level[node] + 1],
    );
    assert.ok(ofLevel.includes(node));
  }
});

test('frames of nodes in two sections are those in one', async () => {
  for (const frames of [3, 300, 70_000]) {
    const list = samples({ seed: 8, count: 500, frames });
    const [one, two] = await Promise.all(
      [false, true].map((isSplit) => open(writerOf(list, someFrames(frames), { isSplit }))),
    );
    assert.ok(two.header.sections.node_frames_low && !two.header.sections.node_frames);
    assert.deepEqual([...two.tree.frame], [...one.tree.frame]);
  }
});

test('damaged data is refused in one line', () => {
  const bytes = tenStacks().bytes();
  const change = (at, value) => {
    const copy = Buffer.from(bytes);
    copy[at] = value;
    return copy;
  };
  assert.throws(() => new Profile(change(0, 65)), /no profile/);
  assert.throws(() => new Profile(change(4, 2)), /version 2/);
  assert.throws(() => new Profile(bytes.subarray(0, bytes.length - 4)).rows(0), /cut off/);
});
