// Uses a page that a command has written as a person does, with mouse and keys in headless Chromium, and
// prints the texts and values that the page then shows.
//
//   scripts/page.sh node page/use.mjs PAGE < STEPS > ANSWERS
//
// STEPS is a list in JSON. Each step is a list that begins with its name:
//
//   ["choose", key, value]    opens the selector of a label, and chooses a value
//   ["search", text]          types into the search field
//   ["sandwich", name]        opens callers and callees of a function by its row of the table, which must be
//                             in sight
//   ["press", key]            presses a key
//   ["point", name, graph]    moves the pointer to the widest box of a function
//   ["view"]                  nothing
//
// ANSWERS has a line of JSON for each step, with the page as it is after the step:
//
//   selectors   the texts of the labels' selectors
//   total       the text with the sum of the selection
//   about       the text on the processes and the time; "" if it is not there
//   kinds       the text with the share of each kind of code; "" if it is not there
//   kindSums    the sum of each kind, for each side
//   tooltip     the text beside the pointer; null if there is none
//   table       for each row of the table in sight its name, and class and text of each cell
//   functions   `[name, self of each side, total of each side]` of each function
//   graphs      for each graph `[name, total of each side]` of each node with a value, the root first
//
// The last line has the requests besides the page, and the errors.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Browser } from './test/support/browser.mjs';

/**
 * Clicks on the element of a selector whose text, or the text of its part `textOf`, is wanted; or on its part
 * `target`. Without a wanted text: on the first element. The page may replace elements at any time by equal
 * ones, so the pointer goes to a place.
 */
async function click(page, selector, wanted, { textOf = null, target = null } = {}) {
  const [x, y] = await page.evaluate(
    (list, text, ofText, ofTarget) => {
      const textIn = (element) => (ofText ? element.querySelector(ofText) : element).textContent;
      const found = [...document.querySelectorAll(list)].find(
        (element) => text === null || textIn(element) === text,
      );
      if (!found) {
        throw new Error(`no element ${list} has the text ${text}`);
      }
      const element = ofTarget ? found.querySelector(ofTarget) : found;
      element.scrollIntoView({ block: 'nearest' });
      const { left, top, width, height } = element.getBoundingClientRect();
      return [left + width / 2, top + height / 2];
    },
    selector,
    wanted,
    textOf,
    target,
  );
  await page.mouse.click(x, y);
}

const STEPS = {
  async choose(page, key, value) {
    await click(page, `.labels > button[data-key="${key}"]`, null);
    await click(page, '.labels .values button', value, { textOf: '.text' });
    await page.keyboard.press('Escape');
  },
  async search(page, text) {
    await page.click('.search input');
    await page.evaluate(() => document.activeElement.select());
    await page.keyboard.press('Backspace');
    await page.keyboard.type(text);
    await page.waitForFunction((typed) => window.otlpprof.app.state.search === typed, {}, text);
    await page.keyboard.press('Escape');
  },
  async sandwich(page, name) {
    const row = `.rows .row:has(.name[title=${JSON.stringify(name)}])`;
    await click(page, row, null, { target: 'button' });
  },
  async press(page, key) {
    await page.keyboard.press(key);
  },
  async point(page, name, graph) {
    const at = await page.evaluate(boxOf, name, graph);
    await page.mouse.move(...at);
  },
  async view() {},
};

/** Runs in the page: the middle of the widest box of a function. */
function boxOf(name, graph) {
  const { otlpprof } = window;
  const nodes = otlpprof.nodes(graph);
  const side = otlpprof.header.sides - 1;
  let widest = -1;
  nodes.forEach((node, at) => {
    if (node.name === name && (widest < 0 || node.totals[side] > nodes[widest].totals[side])) {
      widest = at;
    }
  });
  otlpprof.reveal(widest, graph);
  const { left, top, width, height } = otlpprof.boxOf(widest, graph);
  return [left + width / 2, top + height / 2];
}

/** Runs in the page. */
function shown() {
  const { otlpprof } = window;
  const texts = (selector) => [...document.querySelectorAll(selector)].map((found) => found.textContent);
  const element = document.querySelector('.tooltip');
  const tooltip = element.hidden ? null : element.textContent;
  // The nodes of lazy views are completed, which draws the page again.
  const graphs = otlpprof.app.pane.graphs.map((_, index) =>
    otlpprof
      .nodes(index)
      .filter(({ totals }) => totals.some((total) => total > 0))
      .map(({ name, totals }) => [name, ...totals]),
  );
  return {
    selectors: texts('.labels > button'),
    total: document.querySelector('.total').textContent,
    about: document.querySelector('.about')?.innerText ?? '',
    kinds: document.querySelector('.kinds').innerText,
    kindSums: otlpprof.kinds(),
    tooltip,
    table: [...document.querySelectorAll('.rows .row')].map((row) => ({
      name: row.querySelector('.name').title,
      cells: [...row.querySelectorAll('.number')].map((cell) => [cell.className, cell.textContent]),
    })),
    functions: otlpprof.functions().map(({ name, self, total }) => [name, ...self, ...total]),
    graphs,
  };
}

const address = pathToFileURL(path.resolve(process.argv[2])).href;
const steps = JSON.parse(readFileSync(0, 'utf8'));
const browser = await Browser.open();
try {
  const page = await browser.show(address);
  const tableDone = () => page.evaluate(() => window.otlpprof.app.tableDone);
  for (const [name, ...choice] of steps) {
    await tableDone();
    await STEPS[name](page, ...choice);
    await tableDone();
    console.log(JSON.stringify(await page.evaluate(shown)));
  }
  const others = page.requests.filter((url) => url.split('#')[0] !== address);
  console.log(JSON.stringify({ requests: others, errors: page.errors }));
} finally {
  await browser.close();
}
