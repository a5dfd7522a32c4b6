// Times and sizes on large generated profiles, printed for both yardsticks: `deep` has 1,000,000 distinct
// stacks, `labels` has 100,000 stacks in 1,000,000 rows of 40 endpoints, 64 threads and 360 times.
//
//   scripts/page.sh bench [deep|labels]

import { loadavg } from 'node:os';
import { Browser } from './test/support/browser.mjs';
import { manyStacks, TYPES } from './test/support/generate.mjs';
import { ProfileWriter } from './test/support/writer.mjs';

const REPEATS = 3;

function deep() {
  const writer = new ProfileWriter({ title: '1,000,000 stacks', types: [TYPES[0]], isSplit: true });
  return manyStacks(writer, 1_000_000, 40_000, (next) => [
    { value: (1 + Math.floor(next() ** 4 * 20)) * 10_000_000 },
  ]);
}

function labels() {
  const times = { startUnixMs: 1_764_000_000_000, stepMs: 10_000, count: 360 };
  const writer = new ProfileWriter({
    title: '1,000,000 rows',
    types: [TYPES[0]],
    labels: ['rest_endpoint', 'thread.name'],
    times,
  });
  const sets = [];
  for (let endpoint = 0; endpoint < 40; endpoint++) {
    for (let thread = 0; thread < 64; thread++) {
      sets.push(
        writer.set({
          rest_endpoint: `/api/resource-${endpoint}`,
          'thread.name': `http-nio-8080-exec-${thread}`,
        }),
      );
    }
  }
  return manyStacks(writer, 100_000, 20_000, (next) =>
    Array.from({ length: 10 }, () => ({
      value: (1 + Math.floor(next() ** 4 * 20)) * 10_000_000,
      set: sets[Math.floor(next() ** 1.5 * sets.length)],
      time: Math.floor(next() * times.count),
    })),
  );
}

/** The changes that are measured, by profile. */
const CHANGES = {
  deep: [
    ['search', { search: 'CartService\\d+\\.handle' }],
    ['search, wide', { search: 'java' }],
    ['only matches', { search: 'CartService', onlyMatches: true }],
    ['no search', { search: '', onlyMatches: false }],
    ['zoom', 'zoom'],
    ['zoom out', { zoom: [] }],
    ['inverted', { view: 'inverted' }],
    ['sandwich', 'sandwich'],
    ['top down', { view: 'main' }],
    ['remove', 'remove'],
    ['table of functions', 'table'],
  ],
  labels: [
    ['label', { labels: { rest_endpoint: ['/api/resource-3'] } }],
    ['other label', { labels: { 'thread.name': ['http-nio-8080-exec-5', 'http-nio-8080-exec-9'] } }],
    ['no label', { labels: {} }],
    ['window', { window: [30, 90] }],
    ['window, narrow', { window: [100, 101] }],
    ['heat map', { heatMap: true }],
    ['window, heat map', { window: [50, 200] }],
    ['no window', { window: null, heatMap: false }],
    ['inverted', { view: 'inverted' }],
    ['top down', { view: 'main' }],
    ['time order', 'order'],
  ],
};

/** The milliseconds of a change in the page, until the canvas is drawn. */
function measure(change) {
  const { app } = window.otlpprof;
  const named = {
    zoom: () => ({
      zoom: app.profile.tree
        .path(app.profile.tree.levelNodes[app.profile.tree.levelStart[4] + 3])
        .map((node) => app.profile.tree.frame[node]),
    }),
    sandwich: () => ({ view: 'sandwich', sandwich: app.profile.tree.frame[1], zoom: [] }),
    remove: () => ({ filters: [{ keep: false, frame: app.profile.tree.frame[5] }] }),
    order: () => ({ view: 'order', thread: 1 }),
  };
  if (change === 'table') {
    const begin = performance.now();
    app.model.stages.functions.key = undefined;
    app.model.functions();
    return performance.now() - begin;
  }
  const begin = performance.now();
  app.set(named[change]?.() ?? (window.otlpprof.set(change), {}));
  return performance.now() - begin;
}

async function run(browser, name, writer) {
  const { header } = writer;
  const text = writer.text();
  const address = browser.write(text, name);
  console.log(
    `${name}: ${writer.nodeFrames.length} nodes, ${writer.rows[0].length} rows, ` +
      `${writer.frames.length} frames,` +
      ` page ${((text.length + 130_000) / 1e6).toFixed(1)} MB (${header.title})`,
  );
  const results = new Map();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const page = await browser.show(address);
    const timings = await page.evaluate(() => window.otlpprof.timings);
    await page.evaluate(() => window.otlpprof.app.tableDone);
    const add = (key, ms) => results.set(key, [...(results.get(key) ?? []), ms]);
    for (const key of ['load', 'inflate', 'read', 'build']) {
      add(key, timings[key]);
    }
    for (const [key, change] of CHANGES[name]) {
      add(key, await page.evaluate(measure, change));
      await page.evaluate(() => window.otlpprof.app.tableDone);
    }
    await page.close();
  }
  for (const [key, list] of results) {
    console.log(`  ${key.padEnd(20)} ${list.map((ms) => `${ms.toFixed(0)} ms`.padStart(9)).join('')}`);
  }
}

const chosen = process.argv[2] ? [process.argv[2]] : ['deep', 'labels'];
const browser = await Browser.open();
try {
  for (const name of chosen) {
    await run(browser, name, name === 'deep' ? deep() : labels());
  }
  console.log(
    `load average of the machine: ${loadavg()
      .map((load) => load.toFixed(1))
      .join(' ')}`,
  );
} finally {
  await browser.close();
}
