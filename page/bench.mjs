// Times and sizes on large generated profiles, printed for both yardsticks: `deep` has 1,000,000 distinct
// stacks, `labels` has 100,000 stacks in 1,000,000 rows of 40 endpoints, 64 threads and 360 times. PAGE is a
// page with such a profile that a command has written; otherwise the profile is generated here.
//
//   scripts/page.sh bench [deep|labels [PAGE]]
//
// Times are medians, followed by all of them. `load` is the time from the opening of the page to its first
// frame. Other times are those of a change: until the page is changed, and until its next frame.

import { statSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Browser } from './test/support/browser.mjs';
import { manyStacks, TYPES } from './test/support/generate.mjs';
import { ProfileWriter } from './test/support/writer.mjs';

const REPEATS = 5;

/** The goals in milliseconds, by profile and measurement. */
const GOALS = {
  deep: { load: 3000, search: 300, 'search, wide': 300, zoom: 50, inverted: 1000, sandwich: 1000 },
  labels: { load: 3000, label: 300, 'other label': 300, window: 300, 'window, narrow': 300 },
};

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
    ['by thread', { view: 'main', threads: true }],
    ['by thread, label', { labels: { rest_endpoint: ['/api/resource-3'] } }],
    ['no threads', { threads: false, labels: {} }],
  ],
};

/** Runs in the page: the milliseconds of a change, until the canvas is drawn and until the next frame. */
async function measure(change) {
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
    return [performance.now() - begin];
  }
  const changes = named[change]?.();
  const begin = performance.now();
  if (changes) {
    app.set(changes);
  } else {
    window.otlpprof.set(change);
  }
  const changed = performance.now() - begin;
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return [changed, performance.now() - begin];
}

const median = (list) => list.toSorted((left, right) => left - right)[list.length >> 1];
const text = (ms) => `${ms.toFixed(0)} ms`.padStart(9);

async function run(browser, name, address) {
  const bytes = statSync(new URL(address)).size;
  const results = new Map();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const page = await browser.show(address);
    const timings = await page.evaluate(() => window.otlpprof.timings);
    await page.evaluate(() => window.otlpprof.app.tableDone);
    if (repeat === 0) {
      const { nodes, rows, frames } = await page.evaluate(() => window.otlpprof.header);
      const numbers = `${nodes} nodes, ${rows[0]} rows, ${frames} functions`;
      console.log(`page ${name}: ${numbers}, ${(bytes / 1e6).toFixed(2)} MB`);
    }
    const add = (key, ms) => results.set(key, [...(results.get(key) ?? []), ms]);
    for (const key of ['load', 'inflate', 'read', 'build']) {
      add(key, [timings[key]]);
    }
    for (const [key, change] of CHANGES[name]) {
      add(key, await page.evaluate(measure, change));
      await page.evaluate(() => window.otlpprof.app.tableDone);
    }
    await page.close();
  }
  for (const [key, list] of results) {
    const [changed, framed] = [0, 1].map((at) => list.map((times) => times[at]));
    const ofFrame = framed[0] === undefined ? '' : `, next frame ${text(median(framed)).trim()}`;
    const goal = GOALS[name][key] ? `  (goal: ${GOALS[name][key]} ms)` : '';
    console.log(
      `  ${key.padEnd(20)} ${text(median(changed))}  [${changed.map(text).join('')} ]${ofFrame}${goal}`,
    );
  }
}

const [wanted, file] = process.argv.slice(2);
const browser = await Browser.open();
try {
  for (const name of wanted ? [wanted] : ['deep', 'labels']) {
    const made = () => browser.write((name === 'deep' ? deep() : labels()).text(), name);
    await run(browser, name, file ? pathToFileURL(path.resolve(file)).href : made());
  }
  console.log(
    `load average of the machine: ${loadavg()
      .map((load) => load.toFixed(1))
      .join(' ')}`,
  );
} finally {
  await browser.close();
}
