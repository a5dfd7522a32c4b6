// The layout of the page in headless Chromium: on wide and narrow screens nothing is cut off, and texts
// differ from their backgrounds, light and dark.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { Browser } from './support/browser.mjs';
import { samples, tenStacks, writerOf } from './support/generate.mjs';
import { FRAMES, labelled, withPage } from './support/opened.mjs';

/** The least contrast of a text, by the Web Content Accessibility Guidelines 2.2, level AA. */
const LEAST_CONTRAST = 4.5;

let browser;

before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

function withKinds() {
  const names = ['your code', 'JDK', 'JIT', 'GC', 'other VM', 'native', 'kernel', 'other'];
  const rules = { names, calledBy: names.map(() => [...names.keys()]), ofRoles: [[...names.keys()]] };
  const kinds = { rules, codeOf: ({ name }) => name.length % names.length, roleOf: () => 0 };
  return writerOf(samples({ seed: 77, count: 400 }), FRAMES, { kinds });
}

function compared() {
  const list = samples({ seed: 76, count: 400, sides: 2 });
  const header = { title: 'new.otlp compared with base.otlp', sideNames: ['base.otlp', 'new.otlp'] };
  return writerOf(list, FRAMES, { ...header, sideSeconds: [20, 50] });
}

/**
 * Runs in the page: the controls and captions that are not wholly in sight, or whose text is cut. Names of
 * files may end in an ellipsis where the whole is the title.
 */
function cutOff() {
  const isSeen = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const elements = document.querySelectorAll(
    'button, select, input, canvas, .strip-caption, .found, .total, .kinds',
  );
  return [...elements]
    .filter(isSeen)
    .filter((element) => {
      const { left, right } = element.getBoundingClientRect();
      const mayBeCut = getComputedStyle(element).textOverflow === 'ellipsis' && element.title !== '';
      const isCut = element.tagName !== 'INPUT' && element.scrollWidth > element.clientWidth + 1 && !mayBeCut;
      return left < -0.5 || right > window.innerWidth + 0.5 || isCut;
    })
    .map((element) => `${element.tagName} ${element.className} ${element.textContent}`);
}

for (const width of [1280, 390]) {
  test(`no control and no caption is cut off at ${width} pixels`, async () => {
    for (const text of [tenStacks().text(), labelled().text(), compared().text(), withKinds().text()]) {
      await withPage(browser, text, { width, height: 800 }, async (page) => {
        const { times, sides } = await page.evaluate(() => window.otlpprof.header);
        await page.evaluate(() => window.otlpprof.app.toolbar.openControls());
        for (const changes of [
          {},
          { search: 'run|flush' },
          { search: '', view: 'sandwich', sandwich: FRAMES[12].name },
          ...(times ? [{ view: 'order', thread: 2, heatMap: true, window: [2, 9] }] : []),
          ...(sides === 2 ? [{ view: 'main', elided: true }, { elided: false, diffMode: 'raw' }] : []),
          { panes: 'table', view: 'main' },
        ]) {
          await page.evaluate(async (state) => {
            window.otlpprof.set(state);
            await window.otlpprof.app.tableDone;
          }, changes);
          assert.deepEqual(await page.evaluate(cutOff), [], JSON.stringify(changes));
        }
      });
    }
  });
}

test('the line of kinds of code breaks between kinds', async () => {
  await withPage(browser, withKinds().text(), { width: 390, height: 800 }, async (page) => {
    const kinds = await page.$$eval('.kinds span', (spans) =>
      spans.map((span) => ({ lines: span.getClientRects().length, top: span.getBoundingClientRect().top })),
    );
    assert.ok(new Set(kinds.map(({ top }) => top)).size > 1, 'more than one line');
    assert.deepEqual(kinds.filter(({ lines }) => lines !== 1), []);
  });
});

test('the list of a label opens by its key on a narrow screen', async () => {
  await withPage(browser, labelled().text(), { width: 390, height: 800 }, async (page) => {
    await page.keyboard.press('l');
    assert.ok(await page.$eval('.panel', (panel) => panel.checkVisibility()));
    assert.ok(await page.evaluate(() => document.querySelector('.panel').contains(document.activeElement)));
  });
});

/** Runs in the page: the least contrast of texts in boxes, by colour mode, and of texts on the page. */
function contrasts() {
  const { app } = window.otlpprof;
  const context = document.createElement('canvas').getContext('2d');
  const luminance = (colour) => {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((byte) => {
      const part = byte / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((left, right) => left - right);
    return (high + 0.05) / (low + 0.05);
  };
  const found = {};
  for (const mode of ['kind', 'package']) {
    app.set({ colour: mode });
    const frames = Array.from({ length: app.profile.frames }, (_, frame) => app.palette.frame(frame));
    found[mode] = Math.min(...frames.map((fill) => contrast(fill, app.palette.text)));
  }
  const changes = Array.from({ length: 21 }, (_, at) => at / 10 - 1);
  const fills = changes.flatMap((change) =>
    [-1, 0, 1, 2, 3].map((frame) => app.palette.change(change, frame)),
  );
  found.change = Math.min(...fills.map((fill) => contrast(fill, app.palette.text)));
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name);
  for (const [text, background] of [
    ['--text', '--page'],
    ['--quiet-text', '--page'],
    ['--quiet-text', '--surface'],
    ['--accent-text', '--accent-soft'],
    ['--grown', '--graph'],
    ['--shrunk', '--graph'],
  ]) {
    found[`${text} on ${background}`] = contrast(colour(text), colour(background));
  }
  return found;
}

for (const isDark of [false, true]) {
  test(`texts differ from their backgrounds, ${isDark ? 'dark' : 'light'}`, async () => {
    await withPage(browser, labelled().text(), { isDark }, async (page) => {
      for (const [name, contrast] of Object.entries(await page.evaluate(contrasts))) {
        assert.ok(contrast >= LEAST_CONTRAST, `${name}: ${contrast.toFixed(2)}`);
      }
    });
  });
}
