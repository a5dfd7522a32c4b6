// Answers questions about the views of a page with their values, for comparisons with other readers.
//
//   scripts/page.sh node page/values.mjs PAGE < REQUESTS > ANSWERS
//
// REQUESTS is a list in JSON of `{ set, graphs, boxes }`: the changes of the state (see page/src/api.js), the
// number of graphs, and the number of random boxes to measure. ANSWERS has a line of JSON for each:
//
//   graphs      for each graph all nodes, flat: title, parent, total and self value of each side
//   functions   `[title, self of each side, total of each side]` of each function
//   steps       the sum of each step of time
//   labels      for each key `[value, sum]` of each value
//   matches     the sum of the matches and the whole; null without a search
//   boxes       `[node, width, node at the middle]` of random boxes of the first graph, in pixels
//   width       the width of the graph
//
// The last line has the titles, `[name, detail]`, the requests besides the page, and the errors.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Browser } from './test/support/browser.mjs';

/** Runs in the page. */
function answer({ set, graphs, boxes }) {
  const { otlpprof } = window;
  window.titles ??= new Map();
  const titleOf = ({ name, detail }) => {
    const key = JSON.stringify([name, detail]);
    if (!window.titles.has(key)) {
      window.titles.set(key, window.titles.size);
    }
    return window.titles.get(key);
  };
  otlpprof.set(set);
  const lists = Array.from({ length: graphs }, (_, index) => otlpprof.nodes(index));
  const found = {
    graphs: lists.map((nodes) =>
      nodes.flatMap((node) => [titleOf(node), node.parent, ...node.totals, ...node.self]),
    ),
    functions: otlpprof.functions().map((one) => [titleOf(one), ...one.self, ...one.total]),
    steps: otlpprof.stepSums(),
    labels: Object.fromEntries(otlpprof.header.labels.map(({ key }) => [key, otlpprof.labelSums(key)])),
    matches: otlpprof.matches(),
  };
  if (boxes > 0) {
    const side = otlpprof.header.sides - 1;
    const wide = [...lists[0].keys()].filter((node) => lists[0][node].totals[side] > 0);
    let state = 1;
    const next = () => (state = (state * 48271) % 2147483647) / 2147483647;
    found.width = otlpprof.width;
    found.boxes = Array.from({ length: boxes }, () => {
      const node = wide[Math.floor(next() * wide.length)];
      otlpprof.reveal(node);
      const { left, top, width, height } = otlpprof.boxOf(node);
      return [node, width, otlpprof.nodeAt(left + width / 2, top + height / 2)];
    });
  }
  return found;
}

const address = pathToFileURL(path.resolve(process.argv[2])).href;
const requests = JSON.parse(readFileSync(0, 'utf8'));
const browser = await Browser.open();
try {
  const page = await browser.show(address);
  for (const request of requests) {
    console.log(JSON.stringify(await page.evaluate(answer, request)));
  }
  const titles = await page.evaluate(() => [...window.titles.keys()].map((key) => JSON.parse(key)));
  const others = page.requests.filter((url) => url.split('#')[0] !== address);
  console.log(JSON.stringify({ titles, requests: others, errors: page.errors }));
} finally {
  await browser.close();
}
