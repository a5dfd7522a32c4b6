// Builds page/dist/page.html, the template that the command fills with a profile. Needs only Node.
//
//   node page/build.mjs           writes the file
//   node page/build.mjs --check   exits with 1 if the file differs from what would be written

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.mjs';

const FOLDER = path.dirname(fileURLToPath(import.meta.url));
const OUT = path.join(FOLDER, 'dist', 'page.html');
/** Later files override earlier ones. */
const STYLES = ['controls.css', 'choices.css', 'panes.css', 'phone.css'];
/** Ways from a text to markup or code. */
const MARKUP =
  /\b(innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|eval\(|Function\()/;
/** The command replaces this text with the profile. */
export const MARKER = '@@PROFILE@@';

function source(name) {
  return readFileSync(path.join(FOLDER, 'src', name), 'utf8');
}

function sha256(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** The page with the marker. */
export function page() {
  const script = bundle(path.join(FOLDER, 'src', 'main.js'));
  const style = STYLES.map((name) => source(path.join('style', name))).join('');
  for (const text of [script, style]) {
    // Such text would end the element, or the place of the profile would be ambiguous.
    if (/<\/(script|style)|<!--/i.test(text) || text.includes(MARKER)) {
      throw new Error('the script or the style contains text that must not stand in the page');
    }
  }
  if (MARKUP.test(script)) {
    throw new Error(`names of a profile are text: the script must not use ${script.match(MARKUP)[0]}`);
  }
  const policy = [
    "default-src 'none'",
    `script-src ${sha256(script)}`,
    `style-src ${sha256(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const parts = { policy, style, script, profile: MARKER };
  return source('page.html').replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
}

function main() {
  const built = page();
  if (process.argv.includes('--check')) {
    let found = '';
    try {
      found = readFileSync(OUT, 'utf8');
    } catch {
      // A missing file differs.
    }
    if (found !== built) {
      console.error('page: page/dist/page.html is not what page/src builds: run scripts/page.sh build');
      process.exit(1);
    }
    return;
  }
  mkdirSync(path.dirname(OUT), { recursive: true });
  writeFileSync(OUT, built);
  console.log(`page/dist/page.html: ${built.length} bytes`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main();
}
