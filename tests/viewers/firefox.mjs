// Loads a file into the Firefox Profiler's own command line, and prints its threads: name, and of each
// function the self and total value and the library.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';

const require = createRequire(path.join(process.env.OTLPPROF_PAGE_PACKAGES, 'package.json'));
const described = require.resolve('@firefox-devtools/profiler-cli/package.json');
const { bin } = JSON.parse(readFileSync(described, 'utf8'));
const cli = path.join(path.dirname(described), typeof bin === 'string' ? bin : Object.values(bin)[0]);

const [file] = process.argv.slice(2);
const folder = mkdtempSync(path.join(tmpdir(), 'otlpprof-viewer-'));
const env = { ...process.env, PROFILER_CLI_SESSION_DIR: folder, PROFILER_CLI_NO_SYMBOLICATE: '1' };
const session = ['--session', 'export'];

// The command's own `load` gives the process that keeps the profile half a second to start.
const daemon = spawn(process.execPath, [cli, '--daemon', file, ...session], {
  env,
  stdio: 'ignore',
});
const ended = new Promise((resolve) => daemon.once('exit', resolve));
let isRunning = true;
ended.then(() => (isRunning = false));

/** Whether the daemon answers. A command would remove the files of a daemon that does not listen yet. */
function listens() {
  const socket = readdirSync(folder).find((name) => name.endsWith('.sock'));
  return new Promise((resolve) => {
    const connection = connect(path.join(folder, socket ?? 'none'));
    connection.once('connect', () => resolve(true) && connection.destroy());
    connection.once('error', () => resolve(false));
  });
}

/** The answer of a command, which is repeated while the daemon loads the profile. */
async function ask(...options) {
  while (isRunning && !(await listens())) {
    await setTimeout(20);
  }
  for (;;) {
    const all = [cli, ...options, '--json', ...session];
    const { status, stdout, stderr } = spawnSync(process.execPath, all, {
      encoding: 'utf8',
      env,
      maxBuffer: 1 << 30,
    });
    if (status === 0) {
      return JSON.parse(stdout);
    }
    if (!isRunning || !/loading/i.test(stdout + stderr)) {
      throw new Error(`profiler-cli ${options.join(' ')}: ${stdout}${stderr}`);
    }
    await setTimeout(100);
  }
}

try {
  const info = await ask('profile', 'info', '--all');
  const threads = [];
  for (const { pid, threads: ofProcess } of info.processes) {
    for (const { threadHandle, name, tid } of ofProcess) {
      const { functions } = await ask('thread', 'functions', '--thread', threadHandle, '--include-idle');
      const sums = functions.map((of) => [of.name, of.selfSamples, of.totalSamples, of.library ?? null]);
      threads.push({ pid, tid, name, functions: sums });
    }
  }
  process.stdout.write(JSON.stringify({ name: info.name, threads }));
} finally {
  daemon.kill('SIGKILL');
  await ended;
  rmSync(folder, { recursive: true, force: true });
}
