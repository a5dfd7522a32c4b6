// The policy of the page in headless Chromium: markup is text, nothing is fetched, damage is reported.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { Browser } from './support/browser.mjs';
import { tenStacks, TYPES } from './support/generate.mjs';
import { TIMES, withPage } from './support/opened.mjs';
import { ProfileWriter } from './support/writer.mjs';

let browser;

before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

test('names, labels, titles and notes with markup are text', async () => {
  const bad = [
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '</script><script>alert(2)</script>',
    '"><svg onload=alert(3)>',
    '@@PROFILE@@ $& $1',
  ];
  const writer = new ProfileWriter({
    title: bad[1],
    types: [{ ...TYPES[0], label: bad[0] }],
    labels: [bad[3]],
    notes: bad,
    selection: bad[2],
    times: TIMES,
  });
  writer.add(
    bad.map((name) => writer.frame(name, 0, name)),
    5,
    { set: writer.set({ [bad[3]]: bad[0] }), time: 3 },
  );
  await withPage(browser, writer.text(), {}, async (page) => {
    assert.deepEqual(
      (await page.evaluate(() => window.otlpprof.nodes())).map(({ name }) => name),
      ['all', ...bad],
    );
    await page.evaluate(() => {
      const { app } = window.otlpprof;
      app.labels.toggle(0);
      app.openFrameMenu(0, 50, 50);
      app.addFilter(true, 1);
      app.sandwich(2);
      app.set({ search: '<img', heatMap: true });
      app.tooltip.show(app.model, app.pane.graphs[1], 1, 10, 10);
      return app.tableDone;
    });
    const counts = await page.evaluate(() =>
      ['img', 'svg', 'script'].map(
        (tag) => document.body.querySelectorAll(tag === 'svg' ? 'svg' : tag).length,
      ),
    );
    // The page's own script is the only one.
    assert.deepEqual(counts, [
      0,
      0,
      await page.evaluate(() => document.body.querySelectorAll('script:not([id])').length),
    ]);
    assert.match(
      await page.$eval('.rows', (element) => element.textContent),
      /<img src=x onerror=alert\(1\)>/,
    );
    assert.equal(await page.title(), bad[1]);
  });
});

test('the policy forbids other scripts, styles and requests', async () => {
  const address = browser.write(tenStacks().text());
  const page = await browser.show(address);
  const ran = await page.evaluate(async () => {
    const script = document.createElement('script');
    script.textContent = 'window.intruder = 1';
    document.body.append(script);
    const fetched = await fetch('data:text/plain,x').then(
      () => true,
      () => false,
    );
    return [window.intruder ?? 0, fetched];
  });
  assert.deepEqual(ran, [0, false]);
  await page.close();
});

test('a page without a profile, or with a damaged one, says so', async () => {
  for (const [text, message] of [
    ['@@PROFILE@@', /has no profile/],
    ['AAAA', /cannot be read/],
    ['%', /cannot be read/],
  ]) {
    const page = await browser.show(browser.write(text));
    assert.match(await page.$eval('.failure', (element) => element.textContent), message);
    await page.close();
  }
});
