// The built file: equal to the sources' page, with one place for the profile and a policy that fits.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { MARKER, page } from '../build.mjs';
import { bundle } from '../bundle.mjs';

const BUILT = readFileSync(new URL('../dist/page.html', import.meta.url), 'utf8');

test('the checked-in page is what the sources build', () => {
  assert.ok(BUILT === page(), 'run scripts/page.sh build');
});

test('the page has one marker, in the profile element, and hashes of its own script and style', () => {
  assert.deepEqual(BUILT.split(MARKER).length, 2);
  assert.match(
    BUILT,
    new RegExp(`<script type="application/octet-stream" id="profile">${MARKER}</script>`),
  );
  for (const [tag, text] of [
    ['script', BUILT.match(/<script>([^]*?)<\/script>/)[1]],
    ['style', BUILT.match(/<style>([^]*?)<\/style>/)[1]],
  ]) {
    const hash = createHash('sha256').update(text).digest('base64');
    assert.ok(BUILT.includes(`${tag}-src 'sha256-${hash}'`), tag);
  }
});

test('modules that cannot be packed are refused', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'otlpprof-bundle-'));
  const write = (name, text) => writeFileSync(path.join(folder, name), text);
  const packed = () => bundle(path.join(folder, 'main.js'));
  try {
    write('one.js', 'export const a = 1;\n');
    write(
      'main.js',
      "import { a } from './one.js';\n\n// A comment.\nfunction b() {\n  return a;\n}\nb();\n",
    );
    assert.equal(
      packed(),
      "(() => {\n'use strict';\nconst a = 1;\nfunction b() {\nreturn a;\n}\nb();\n})();\n",
    );
    for (const [text, message] of [
      ["import { a } from './one.js';\nconst a = 2;\n", /a is declared in/],
      ["import { a as c } from './one.js';\n", /another name/],
      ["import a from './one.js';\n", /unknown form/],
      ['export default 1;\n', /unknown form/],
    ]) {
      write('main.js', text);
      assert.throws(packed, message);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
