// Generated profiles: samples in plain form, and the writer's form of them.

import { random } from './random.mjs';
import { ProfileWriter } from './writer.mjs';

const CPU = { name: 'cpu', unit: 'nanoseconds', label: 'CPU time', snapshot: false };
const ALLOC = { name: 'alloc', unit: 'bytes', label: 'Allocated memory', snapshot: false };
const HEAP = { name: 'live-heap', unit: 'bytes', label: 'Live heap', snapshot: true };

const PACKAGES = [
  'java.lang',
  'java.util.concurrent',
  'com.example.shop.cart',
  'com.example.shop.search',
  'org.springframework.web.servlet',
  'org.apache.catalina.core',
  'io.netty.channel',
  'org.hibernate.engine',
];
const CLASSES = [
  'Thread',
  'Worker',
  'CartService',
  'SearchIndex',
  'DispatcherServlet',
  'Pipeline',
  'Session',
  'Mapper',
];
const METHODS = [
  'run',
  'call',
  'handle',
  'process',
  'lookup',
  'apply',
  'flush',
  'encode',
  'compare',
  'hash',
];

/** `count` frames with names, kinds and details as JVMs have them. */
export function someFrames(count) {
  return Array.from({ length: count }, (_, number) => {
    const kind =
      number % 11 === 7 ? 1 : number % 17 === 9 ? 2 : number % 29 === 11 ? 3 : number % 53 === 20 ? 4 : 0;
    const method = METHODS[number % METHODS.length];
    const suffix = number < 80 ? '' : String(number);
    switch (kind) {
      case 1:
        return { name: `G1ParScanThreadState::${method}_${number}`, kind, detail: 'libjvm.so' };
      case 2:
        return { name: `do_sys_${method}_${number}`, kind, detail: '' };
      case 3:
        return { name: `${method}_stub_${number}`, kind, detail: '' };
      case 4:
        return { name: `[truncated ${number}]`, kind, detail: '' };
      default: {
        const own = CLASSES[(number >> 3) % CLASSES.length];
        const name = `${PACKAGES[(number >> 1) % PACKAGES.length]}.${own}${suffix}.${method}`;
        return { name, kind, detail: `${own}${suffix}.java` };
      }
    }
  });
}

/**
 * Samples of a random program: `{ stack, value, type, labels, time, side, series }`, stacks of frame numbers,
 * root first. Recursion occurs. `labels`: numbers of values by key. `sides`: 2 gives some stacks to one side
 * alone.
 */
export function samples({
  seed = 1,
  count = 200,
  frames = 40,
  depth = 12,
  types = 1,
  labels = {},
  times = 1,
  sides = 1,
  series = 1,
}) {
  const next = random(seed);
  const pick = (limit) => Math.floor(next() * limit);
  return Array.from({ length: count }, () => {
    const stack = [pick(3)];
    const length = 1 + pick(depth);
    while (stack.length < length) {
      const last = stack[stack.length - 1];
      stack.push(next() < 0.15 ? last : (last * 7 + pick(4) * 5 + stack.length) % frames);
    }
    const side =
      sides === 2
        ? stack[stack.length - 1] % 5 === 0
          ? 0
          : stack[stack.length - 1] % 5 === 1
            ? 1
            : pick(2)
        : 0;
    return {
      stack,
      value: 1 + pick(1_000_000),
      type: pick(types),
      labels: Object.fromEntries(
        Object.entries(labels)
          .filter(() => next() < 0.9)
          .map(([key, values]) => [key, `${key}-${pick(values)}`]),
      ),
      time: pick(times),
      side,
      series: pick(series),
    };
  });
}

/** A profile of samples. */
export function writerOf(list, frames, options = {}) {
  const writer = new ProfileWriter({ types: [CPU], ...options });
  const numbers = frames.map(({ name, kind, detail }) => writer.frame(name, kind, detail));
  for (const { stack, value, type, labels, time, side, series } of list) {
    writer.add(
      stack.map((frame) => numbers[frame]),
      value,
      { type, set: writer.set(labels), time, side, series },
    );
  }
  return writer;
}

export const TYPES = [CPU, ALLOC, HEAP];

/** Ten stacks of a small program. */
export function tenStacks() {
  const writer = new ProfileWriter({ title: 'shop, 30 s', types: [CPU] });
  const java = (name) => writer.frame(name, 0, '');
  const run = [java('java.lang.Thread.run'), java('java.util.concurrent.ThreadPoolExecutor$Worker.run')];
  const cart = [...run, java('com.example.shop.web.CartController.show')];
  const total = [...cart, java('com.example.shop.cart.CartService.total')];
  const native = (name) => writer.frame(name, 1, 'libjvm.so');
  writer.add([...total, java('java.math.BigDecimal.add')], 412_000_000);
  writer.add([...total, java('java.math.BigDecimal.multiply')], 288_000_000);
  writer.add([...total], 30_000_000);
  writer.add(
    [...cart, java('com.example.shop.cart.Prices.lookup'), java('java.util.HashMap.get')],
    250_000_000,
  );
  writer.add(
    [
      ...cart,
      java('com.example.shop.cart.Prices.lookup'),
      java('java.util.HashMap.get'),
      java('java.util.HashMap.getNode'),
    ],
    150_000_000,
  );
  writer.add(
    [...run, java('com.example.shop.web.SearchController.find'), java('java.util.regex.Matcher.find')],
    330_000_000,
  );
  writer.add(
    [
      ...run,
      java('java.util.concurrent.locks.LockSupport.park'),
      writer.frame('Unsafe_Park', 1, 'libjvm.so'),
      writer.frame('futex_wait', 2, ''),
    ],
    60_000_000,
  );
  writer.add(
    [native('start_thread'), native('GangWorker::run'), native('G1ParScanThreadState::trim_queue')],
    190_000_000,
  );
  writer.add(
    [
      native('start_thread'),
      native('CompileBroker::compiler_thread_loop'),
      native('C2Compiler::compile_method'),
    ],
    240_000_000,
  );
  writer.add([writer.frame('[unknown]', 4, '')], 12_000_000);
  return writer;
}

/**
 * Many distinct stacks, each one sample: `stacks` of a mean depth of 12, most of them sharing their lower
 * part. `perStack(next)` gives the rows of a stack: `{ value, set, time, side }`.
 */
export function manyStacks(writer, stacks, frameCount, perStack, seed = 7) {
  const next = random(seed);
  const frames = someFrames(frameCount).map(({ name, kind, detail }) => writer.frame(name, kind, detail));
  const leaves = new Set();
  while (leaves.size < stacks) {
    const depth = 5 + Math.floor(next() * 10 + next() * 8);
    let node = 0;
    for (let level = 0; level < depth; level++) {
      const choices = level < 3 ? 2 : level < 9 ? 4 : 11;
      const choice = Math.floor(choices * next() ** 1.6);
      // Some functions are called from many places, as in programs.
      const popularity = (Math.imul(node * 13 + choice + 1, 2654435761) >>> 0) / 2 ** 32;
      node = writer.child(node, frames[Math.floor(frameCount * popularity ** 2)]);
    }
    if (!leaves.has(node)) {
      leaves.add(node);
      for (const { value, set = 0, time = 0, side = 0 } of perStack(next)) {
        writer.rows[0].push([node, value, set, time, side, 0]);
      }
    }
  }
  return writer;
}
