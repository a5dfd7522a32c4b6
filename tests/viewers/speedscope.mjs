// Opens a file in speedscope's own page, in headless Chromium, and prints the profiles as speedscope has read
// them: name, unit, and the value of each stack. speedscope saves them itself, by Ctrl+S.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(path.join(process.env.OTLPPROF_PAGE_PACKAGES, 'package.json'));
const load = async (name) => (await import(pathToFileURL(require.resolve(name)))).default;

const [file] = process.argv.slice(2);
const chromium = await load('@sparticuz/chromium');
const puppeteer = await load('puppeteer-core');
const folder = mkdtempSync(path.join(tmpdir(), 'otlpprof-viewer-'));
const useless = ['--single-process', '--no-zygote'];
const browser = await puppeteer.launch({
  executablePath: process.env.OTLPPROF_CHROMIUM,
  args: [...chromium.args.filter((argument) => !useless.includes(argument)), '--no-sandbox'],
  headless: 'shell',
  protocolTimeout: 300_000,
});

/** The value of each stack of a saved profile, whose events open and close frames. */
function stacksOf(profile, frames) {
  const sums = new Map();
  const stack = [];
  let last = profile.startValue;
  for (const { type, frame, at } of profile.events) {
    if (at > last) {
      const key = JSON.stringify(stack);
      sums.set(key, (sums.get(key) ?? 0) + at - last);
      last = at;
    }
    if (type === 'O') {
      stack.push(frames[frame].name);
    } else {
      stack.pop();
    }
  }
  return [...sums].map(([key, value]) => [JSON.parse(key), value]);
}

try {
  const script = path.join(folder, 'profile.js');
  const text = readFileSync(file).toString('base64');
  writeFileSync(script, `speedscope.loadFileFromBase64('profile', '${text}')`);
  const release = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist', 'release');
  const page = await browser.newPage();
  const dialogs = [];
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    dialog.dismiss();
  });
  await page.evaluateOnNewDocument(() => {
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      blob.text?.().then((saved) => (window.saved = saved));
      return create.call(URL, blob);
    };
  });
  await page.goto(`${pathToFileURL(path.join(release, 'index.html'))}#localProfilePath=${script}`);
  await page.waitForFunction(() => document.title.endsWith(' - speedscope'), { timeout: 120_000 });
  const title = await page.title();
  await page.keyboard.down('Control');
  await page.keyboard.press('s');
  await page.keyboard.up('Control');
  await page.waitForFunction(() => window.saved !== undefined, { timeout: 120_000 });
  const saved = JSON.parse(await page.evaluate(() => window.saved));
  const profiles = saved.profiles.map((profile) => ({
    name: profile.name,
    unit: profile.unit,
    stacks: stacksOf(profile, saved.shared.frames),
  }));
  process.stdout.write(JSON.stringify({ title, profiles, dialogs }));
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
