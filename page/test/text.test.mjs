// Numbers, names, colours, comparison and links.

import assert from 'node:assert/strict';
import test from 'node:test';
import { hash, packageOf } from '../src/colours.js';
import { relativeChange, sideFactors, weightedSums, widthWeights } from '../src/diff.js';
import {
  cutRight,
  fitting,
  formatChange,
  formatPoints,
  formatRate,
  formatShare,
  formatTime,
  formatValue,
  stepTime,
} from '../src/format.js';
import { labelName, labelOrder } from '../src/labelnames.js';
import { decodeState, encodeState, initialState } from '../src/link.js';
import { boxNames, packageName, shortName } from '../src/names.js';
import { samples, someFrames, TYPES, writerOf } from './support/generate.mjs';
import { open } from './support/open.mjs';

test('values have real units', () => {
  const cases = [
    [0, 'nanoseconds', '0 ns'],
    [999, 'nanoseconds', '999 ns'],
    [1500, 'nanoseconds', '1.50 µs'],
    [999_600, 'nanoseconds', '1.00 ms'],
    [12_340_000, 'nanoseconds', '12.3 ms'],
    [1.5e9, 'nanoseconds', '1.50 s'],
    [119e9, 'nanoseconds', '119 s'],
    [180e9, 'nanoseconds', '3.00 min'],
    [7200e9, 'nanoseconds', '2.00 h'],
    [1500, 'milliseconds', '1.50 s'],
    [-1500, 'nanoseconds', '-1.50 µs'],
    [0, 'bytes', '0 B'],
    [1023, 'bytes', '1023 B'],
    [1024, 'bytes', '1.00 KiB'],
    [1536 * 1024, 'bytes', '1.50 MiB'],
    [3 * 2 ** 40, 'bytes', '3.00 TiB'],
    [9999, 'count', '9999'],
    [12_345, 'count', '12.3 k'],
    [2.5e6, 'count', '2.50 M'],
    [0.5, 'count', '0.50'],
    [5, 'events', '5 events'],
    [1e6, 'events', '1.00 M events'],
  ];
  for (const [value, unit, text] of cases) {
    assert.equal(formatValue(value, unit), text);
  }
});

test('shares and changes', () => {
  assert.equal(formatShare(1, 3), '33.33 %');
  assert.equal(formatShare(3, 3), '100 %');
  assert.equal(formatShare(0, 3), '0.00 %');
  assert.equal(formatShare(1, 1e6), '<0.01 %');
  assert.equal(formatShare(-1, 4), '−25.00 %');
  assert.equal(formatShare(1, 0), '–');
  assert.equal(formatChange(0.1234, formatPoints), '+12.34 points');
  assert.equal(formatChange(-1e-6, formatPoints), '−<0.01 points');
  assert.equal(formatChange(0, formatPoints), '0 points');
  assert.equal(formatChange(2, String), '+2');
  assert.equal(formatChange(-2, String), '−2');
  assert.match(formatTime(1_700_000_000_000, 1000), /^\d\d:\d\d:\d\d$/);
  assert.match(formatTime(1_700_000_000_000, 1e9), /^\d{4}-\d\d-\d\d /);
  const times = { startUnixMs: 1_700_000_000_000, stepMs: 20, count: 100 };
  assert.match(stepTime(times, 2.5), /^\d\d:\d\d:\d\d\.050$/);
});

test('a box has the longest form of a name that fits, or the beginning of the shortest', () => {
  const one = () => 1;
  assert.equal(cutRight('Main.run', 8, one), 'Main.run');
  assert.equal(cutRight('Main.run', 5, one), 'Main…');
  assert.equal(cutRight('Main.run', 3, one), 'Ma…');
  assert.equal(cutRight('Main.run', 2, one), '');
  assert.equal(cutRight('', 5, one), '');
  assert.equal(cutRight('bb😀aaaa', 4, one), 'bb…');
  const forms = ['Main.running', 'running'];
  assert.equal(fitting(forms, 12, one), 'Main.running');
  assert.equal(fitting(forms, 11, one), 'running');
  assert.equal(fitting(forms, 6, one), 'runni…');
});

test('Java methods have short names, and others keep theirs', () => {
  const [java, native] = [0, 1];
  for (const [name, kind, inPackage, short, method] of [
    ['com.example.Main.run', java, 'com.example', 'Main.run', 'run'],
    ['com.example.Main$Inner.run', java, 'com.example', 'Main$Inner.run', 'run'],
    ['com.example.Main.run(La.B;)V', java, 'com.example', 'Main.run(La.B;)V', 'run(La.B;)V'],
    ['com.example.Main$$Lambda/0x7f00.run', java, 'com.example', 'Main$$Lambda/0x7f00.run', 'run'],
    ['com/example/Main.run', java, 'com/example', 'Main.run', 'run'],
    ['Main.run', java, '', 'Main.run', 'run'],
    ['run', java, '', 'run', null],
    ['[unwalkable: no_frame]', java, '', '[unwalkable: no_frame]', null],
    ['std::vector<a.b>::push', native, '', 'std::vector<a.b>::push', null],
    ['', java, '', '', null],
  ]) {
    assert.equal(packageName(name, kind), inPackage, name);
    assert.equal(shortName(name, kind), short, name);
    assert.deepEqual(boxNames(name, kind), method === null ? [short] : [short, method], name);
  }
});

test('a part of time has cores, threads, or a value per second', () => {
  const cpu = { name: 'cpu', unit: 'nanoseconds', snapshot: false };
  assert.equal(formatRate(150e6, 100, cpu), '1.50 cores');
  assert.equal(formatRate(400e6, 100, { ...cpu, name: 'wall' }), '4.00 threads');
  assert.equal(formatRate(1024, 500, { name: 'alloc', unit: 'bytes', snapshot: false }), '2.00 KiB/s');
  assert.equal(formatRate(1024, 500, { name: 'live', unit: 'bytes', snapshot: true }), '1.00 KiB');
});

test('threads and processes come before other labels, ids of requests last', () => {
  const keys = ['trace_id', 'endpoint', 'process.pid', 'thread.name', 'process.command', 'tenant.id'];
  const names = labelOrder(keys).map((label) => labelName(keys[label]));
  assert.deepEqual(names, ['Thread', 'Process', 'Program', 'endpoint', 'trace_id', 'tenant.id']);
});

test('keys of the profiler have words, those of the program stay as they are', () => {
  assert.equal(labelName('otlpprof.thread.state'), 'Thread state');
  assert.equal(labelName('otlpprof.thread.os_id'), 'OS thread id');
  assert.equal(labelName('tenant'), 'tenant');
});

test('packages of names', () => {
  assert.equal(packageOf('java.util.concurrent.locks.Lock.lock', 0, ''), 'java.util.concurrent');
  assert.equal(packageOf('java.lang.Thread.run', 0, ''), 'java.lang');
  assert.equal(packageOf('Main.main', 0, ''), '(no package)');
  assert.equal(packageOf('Unsafe_Park', 1, 'libjvm.so'), 'libjvm.so');
  assert.equal(packageOf('futex_wait', 2, ''), 'kernel');
  assert.ok(hash('a') !== hash('b') && hash('a') >= 0 && hash('a') < 1);
});

test('sides are comparable by share, per second, or raw', () => {
  assert.deepEqual(sideFactors('share', [50, 200], null), [1 / 50, 1 / 200]);
  assert.deepEqual(sideFactors('share', [0, 200], null), [0, 1 / 200]);
  assert.deepEqual(sideFactors('seconds', [50, 200], [10, 20]), [0.1, 0.05]);
  assert.deepEqual(sideFactors('seconds', [50, 200], [10, null]), [1, 1]);
  assert.deepEqual(sideFactors('raw', [50, 200], [10, 20]), [1, 1]);
  assert.deepEqual(widthWeights('new', [2, 3]), [0, 3]);
  assert.deepEqual(widthWeights('base', [2, 3]), [2, 0]);
  assert.deepEqual(widthWeights('both', [2, 3]), [2, 3]);
  const sums = [Float64Array.of(0, 1, 2), Float64Array.of(0, 5, 5)];
  assert.deepEqual([...weightedSums(sums, [2, 3])], [0, 17, 19]);
  assert.equal(weightedSums(sums, [0, 1]), sums[1]);
  assert.deepEqual(
    [relativeChange(0, 5), relativeChange(5, 0), relativeChange(2, 2), relativeChange(0, 0)],
    [1, -1, 0, 0],
  );
});

test('a page begins with the comparison that its header names', async () => {
  const list = samples({ sides: 2 });
  const opened = (header) =>
    open(writerOf(list, someFrames(40), { types: TYPES, sideNames: ['base', 'new'], ...header }));
  for (const comparison of ['share', 'seconds', 'raw']) {
    const profile = await opened({ comparison });
    assert.equal(initialState(profile).diffMode, comparison);
    const other = { ...initialState(profile), diffMode: comparison === 'raw' ? 'share' : 'raw' };
    assert.deepEqual(decodeState(profile, encodeState(profile, other)), other);
    assert.equal(encodeState(profile, initialState(profile)), '');
  }
  assert.equal(initialState(await opened({})).diffMode, 'share');
  assert.equal(initialState(await opened({ comparison: 'else' })).diffMode, 'share');
});

test('a link reproduces the state, and ignores what the profile lacks', async () => {
  const times = { startUnixMs: 0, stepMs: 1000, count: 20 };
  const list = samples({ labels: { 'a&b=c': 3, region: 2, 'thread.name': 3 }, times: 20 });
  const labels = ['a&b=c', 'region', 'thread.name'];
  const profile = await open(writerOf(list, someFrames(40), { types: TYPES, labels, times }));
  const states = [
    {},
    { type: 2, search: 'a+b&c=#%', onlyMatches: true },
    {
      labels: new Map([
        [0, new Set([0, 2])],
        [1, new Set([1])],
      ]),
    },
    { window: [3, 9], view: 'sandwich', sandwich: 7, zoom: [3, 3, 3, 3, 5, 0, 39], zoomInCallers: true },
    {
      filters: [
        { keep: true, frame: 0 },
        { keep: false, frame: 4 },
      ],
      flame: true,
      colour: 'package',
      minPercent: 0.5,
    },
    {
      view: 'order',
      thread: 2,
      zoomNode: 12,
      theme: 'dark',
      panes: 'table',
      heatMap: true,
      sort: 'name',
      ascending: true,
    },
    { view: 'inverted', diffMode: 'raw', diffWidth: 'both', elided: true, zoom: Array(3000).fill(4) },
  ];
  for (const changes of states) {
    const state = { ...initialState(profile), ...changes };
    const fragment = encodeState(profile, state);
    assert.deepEqual(decodeState(profile, fragment), state);
    assert.ok(fragment.length < 400, fragment);
  }
  assert.equal(encodeState(profile, initialState(profile)), '');
  for (const text of [
    'type=none',
    'window=5-3',
    'window=0-99',
    'focus=4000',
    'zoom=zzzz',
    'view=x',
    'label.none=1',
    'label.region=none',
    'view=sandwich',
    'sandwich=-2',
    'sandwich.name=none',
    'view=sandwich&sandwich.name=none',
    'focus.name=none',
    'remove.name=*zzz',
    'zoom.name=none;*zzz*9;||*',
    'zoom.end=none;*zzz*9;||*',
    'zoom.name=*',
    'zoom.end=',
    'thread.name=none',
    'garbage',
    '%',
    'zoom=..*',
    'minPercent=x',
  ]) {
    assert.deepEqual(decodeState(profile, text), initialState(profile), text);
  }
});
