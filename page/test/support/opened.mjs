// Pages opened for a test, each held to the policy; and a profile with labels, times and a snapshot type.

import assert from 'node:assert/strict';
import { samples, someFrames, TYPES, writerOf } from './generate.mjs';

export const FRAMES = someFrames(40);
export const TIMES = { startUnixMs: 1_700_000_000_000, stepMs: 10_000, count: 24 };

/** Opens a page, gives it to `check`, and holds every page to the policy: no other request, no error. */
export async function withPage(browser, text, options, check) {
  const address = browser.write(text);
  const page = await browser.show(address + (options.hash ?? ''), options);
  try {
    await check(page, address);
    assert.deepEqual(page.errors, []);
    assert.deepEqual([...new Set(page.requests.map((url) => url.split('#')[0]))], [address]);
  } finally {
    await page.close();
  }
}

export const LIST = samples({
  seed: 71,
  count: 2000,
  times: TIMES.count,
  labels: { 'thread.name': 6, endpoint: 12 },
  types: 3,
  series: 2,
});

export function labelled() {
  return writerOf(LIST, FRAMES, {
    title: 'labelled',
    types: TYPES,
    labels: ['thread.name', 'endpoint'],
    times: TIMES,
    notes: ['first note', 'second <b>note</b>'],
    selection: '--where a=b',
  });
}
