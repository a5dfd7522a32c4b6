// Headless Chromium with pages of generated profiles. The packages are outside of the source tree: see
// scripts/page.sh.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const TEMPLATE = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..', 'dist', 'page.html');

/** A package of the lock file. */
async function load(name) {
  const folder = process.env.OTLPPROF_PAGE_PACKAGES;
  if (!folder) {
    throw new Error('OTLPPROF_PAGE_PACKAGES is not set: run the tests by scripts/page.sh test');
  }
  const require = createRequire(path.join(folder, 'package.json'));
  return (await import(pathToFileURL(require.resolve(name)))).default;
}

/** Starts the browser. On a busy machine Chromium has ended by a signal, without a message, at its start. */
async function launched(puppeteer, options, attempts = 3) {
  try {
    return await puppeteer.launch(options);
  } catch (error) {
    if (attempts === 1) throw error;
    return launched(puppeteer, options, attempts - 1);
  }
}

export class Browser {
  static async open() {
    const chromium = await load('@sparticuz/chromium');
    const puppeteer = await load('puppeteer-core');
    const own = new Browser();
    own.folder = mkdtempSync(path.join(tmpdir(), 'otlpprof-page-'));
    const useless = ['--single-process', '--no-zygote'];
    own.browser = await launched(puppeteer, {
      executablePath: process.env.OTLPPROF_CHROMIUM,
      args: [
        ...chromium.args.filter((argument) => !useless.includes(argument)),
        '--no-sandbox',
        '--disable-gpu',
      ],
      headless: 'shell',
      timeout: 120_000,
      protocolTimeout: 300_000,
    });
    return own;
  }

  /** Writes the page of a profile; returns its address. */
  write(text, name = 'page') {
    const file = path.join(this.folder, `${name}.html`);
    writeFileSync(
      file,
      readFileSync(TEMPLATE, 'utf8').replace('@@PROFILE@@', () => text),
    );
    return pathToFileURL(file).href;
  }

  /** Opens an address. The page has `requests` and `errors`, lists that grow. */
  async show(address, { width = 1280, height = 800, isDark = false, scale = 1 } = {}) {
    const page = await this.browser.newPage();
    page.requests = [];
    page.errors = [];
    page.on('request', (request) => page.requests.push(request.url()));
    page.on('pageerror', (error) => page.errors.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && page.errors.push(message.text()));
    page.on('dialog', (dialog) => {
      page.errors.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    await page.setViewport({ width, height, deviceScaleFactor: scale });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: isDark ? 'dark' : 'light' }]);
    await page.goto(address, { timeout: 120_000 });
    await page.waitForFunction(
      () => window.otlpprof || document.querySelector('.failure')?.textContent.includes('.'),
      { timeout: 120_000 },
    );
    return page;
  }

  async close() {
    await this.browser.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
