// Colours of boxes: by kind, by package, by change.

import { hash32 } from './hash.js';
import { KIND_JAVA, KIND_MARKER, KIND_NAMES, KIND_NATIVE } from './profile.js';

/**
 * Hue, its spread over names, and saturation of each kind: Java, native, kernel, VM code, marker, other,
 * thread.
 */
const KINDS = [
  { hue: 138, spread: 34, saturation: 42 },
  { hue: 12, spread: 22, saturation: 62 },
  { hue: 38, spread: 14, saturation: 72 },
  { hue: 212, spread: 20, saturation: 40 },
  { hue: 260, spread: 10, saturation: 7 },
  { hue: 300, spread: 24, saturation: 34 },
  { hue: 186, spread: 12, saturation: 22 },
];

/** Numbers of different hues and lightnesses of a kind, of packages, and of sizes of a change. */
const HUES = 7;
const SHADES = 4;
const PACKAGE_HUES = 60;
const CHANGES = 24;

/** Lightness of boxes, and its spread over names. */
const LIGHT = { base: 73, spread: 8, match: '#e26bd0', text: '#16181d', root: '#c9ced8' };
const DARK = { base: 28, spread: 7, match: '#a92f96', text: '#ffffff', root: '#3d4451' };

/** A number from 0 to 1 that depends on the text alone. */
export function hash(text) {
  return hash32(text) / 2 ** 32;
}

/** The package of a Java name, at most three levels of it; of other frames their object or kind. */
export function packageOf(name, kind, detail) {
  if (kind !== KIND_JAVA) {
    const isObject = kind === KIND_NATIVE && detail !== '' && !detail.includes(':');
    return isObject ? detail : (KIND_NAMES[kind] ?? 'native');
  }
  const parts = name.split('(')[0].split(/[./]/);
  const packages = parts.slice(0, Math.max(0, parts.length - 2));
  return packages.length === 0 ? '(no package)' : packages.slice(0, 3).join('.');
}

export class Palette {
  constructor(profile, mode, isDark) {
    this.profile = profile;
    this.mode = mode;
    this.isDark = isDark;
    this.theme = isDark ? DARK : LIGHT;
    this.ofFrame = new Array(profile.frames);
  }

  get text() {
    return this.theme.text;
  }

  get match() {
    return this.theme.match;
  }

  get root() {
    return this.theme.root;
  }

  /** `[colour, text]` of the legend, for the kinds that are shown. */
  legend(usedKinds) {
    const { theme } = this;
    if (this.mode === 'change') {
      return [
        [this.change(-1, -1), 'less'],
        [this.change(0, -1), 'same'],
        [this.change(1, -1), 'more'],
      ];
    }
    if (this.mode === 'package') {
      return [];
    }
    return [...KINDS.entries()]
      .filter(([kind]) => usedKinds.has(kind))
      .map(([kind, { hue, saturation }]) => [hsl(hue, saturation, theme.base), KIND_NAMES[kind]]);
  }

  frame(frame) {
    return (this.ofFrame[frame] ??= this.mode === 'package' ? this.#byPackage(frame) : this.#byKind(frame));
  }

  #byKind(frame) {
    const { profile, theme } = this;
    const { hue, spread, saturation } = KINDS[profile.kinds[frame]] ?? KINDS[1];
    const name = profile.name(frame);
    const own = hue + shade(name, HUES) * spread;
    const lightness = theme.base + shade(`${name}#`, SHADES) * theme.spread;
    return hsl(own, saturation, lightness);
  }

  #byPackage(frame) {
    const { profile, theme } = this;
    const kind = profile.kinds[frame];
    const name = profile.name(frame);
    const own = packageOf(name, kind, profile.detail(frame));
    const lightness = theme.base + shade(name, SHADES) * theme.spread;
    const saturation = kind === KIND_MARKER ? 5 : 48;
    return hsl(Math.floor(hash(own) * PACKAGE_HUES) * (360 / PACKAGE_HUES), saturation, lightness);
  }

  /** From blue (-1: gone) through grey (0: no change) to red (1: added). */
  change(relative, frame) {
    // Small changes are what people look for: the square root makes them visible.
    const strength = Math.round(Math.sqrt(Math.min(1, Math.abs(relative))) * CHANGES) / CHANGES;
    const hue = relative > 0 ? 6 : 214;
    const lightness = this.isDark ? 27 + 14 * strength : 88 - 22 * strength;
    // Neighbours of one colour stay apart.
    const own = frame < 0 ? 0 : shade(this.profile.name(frame), SHADES) * 5;
    return hsl(hue, 4 + 72 * strength, lightness + own);
  }
}

/** A number from -0.5 to 0.5 that depends on the text: one of a few, so that boxes share colours. */
function shade(text, shades) {
  return Math.floor(hash(text) * shades) / (shades - 1) - 0.5;
}

function hsl(hue, saturation, lightness) {
  return `hsl(${(((hue % 360) + 360) % 360) | 0} ${saturation | 0}% ${lightness.toFixed(1)}%)`;
}
