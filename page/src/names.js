// Short forms of names, for boxes and tables. The whole name is in tooltips and titles.

import { KIND_JAVA } from './profile.js';

/** A Java method with its class, without its package; other names as they are. */
export function shortName(name, kind) {
  return name.slice(packageLength(name, kind));
}

/** The package of a Java method, without the dot at its end; "" if there is none. */
export function packageName(name, kind) {
  return name.slice(0, Math.max(0, packageLength(name, kind) - 1));
}

/** The forms of a name that a box may have, longest first: with the class, without. */
export function boxNames(name, kind) {
  const short = shortName(name, kind);
  const end = short.indexOf('(');
  const dot = kind === KIND_JAVA ? short.lastIndexOf('.', end === -1 ? short.length : end) : -1;
  return dot === -1 ? [short] : [short, short.slice(dot + 1)];
}

/** The number of letters before the class. */
function packageLength(name, kind) {
  if (kind !== KIND_JAVA || name.startsWith('[')) {
    return 0;
  }
  // A descriptor may follow the method, and a hidden class has an address after a slash.
  const end = name.search(/\(|\/0x/);
  const before = end === -1 ? name : name.slice(0, end);
  const ofClass = name[end] === '/' ? before : before.slice(0, Math.max(0, before.lastIndexOf('.')));
  return Math.max(ofClass.lastIndexOf('.'), ofClass.lastIndexOf('/')) + 1;
}
