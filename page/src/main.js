// Entry of the page: reads the profile from its element and starts the app.

import { Api } from './api.js';
import { App } from './app.js';
import { el } from './dom.js';
import { inflateText } from './inflate.js';
import { Profile } from './profile.js';
import { applyTheme } from './theme.js';

/** The template's text in place of a profile begins with this. */
const MARKER_START = '@@';

function fail(text) {
  document.body.replaceChildren(el('p', { class: 'failure', text }));
}

async function start() {
  applyTheme('auto');
  const element = document.getElementById('profile');
  const text = element?.textContent.trim() ?? '';
  if (text === '' || text.startsWith(MARKER_START)) {
    fail('This page has no profile. The command `otlpprof flamegraph` writes pages with one.');
    return;
  }
  if (typeof DecompressionStream === 'undefined') {
    fail('This browser is too old for the page: use Chrome 111, Firefox 113, Safari 16.4 or later.');
    return;
  }
  const timings = { start: performance.now() };
  let app;
  try {
    const bytes = await inflateText(text);
    // The text is as large as all else on the page.
    element.remove();
    timings.inflate = performance.now() - timings.start;
    const read = performance.now();
    const profile = new Profile(bytes);
    timings.read = performance.now() - read;
    const build = performance.now();
    app = new App(profile);
    app.render();
    timings.build = performance.now() - build;
  } catch (error) {
    fail(`The profile in this page cannot be read: ${error.message}.`);
    throw error;
  }
  const api = new Api(app, timings);
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  /** Milliseconds since the page was opened. */
  timings.load = performance.now();
  window.otlpprof = api;
}

document.addEventListener('DOMContentLoaded', start);
