// The heat map of intervals: the colour of a cell is the value of its time. A drag, a click or the keyboard
// chooses a window.

import { el } from './dom.js';
import { formatValue, stepTime } from './format.js';
import { HeatLayout } from './heatlayout.js';
import { sumsOfParts } from './timesums.js';

/** Columns are at least and at most this wide. */
const NARROWEST = 4;
const WIDEST = 40;
/** More columns than these do not read well: columns of a longer time take their place. */
const COLUMNS_MOST = 120;
/** Rows share this height, and are at least and at most this high. */
const MAP_PIXELS = 180;
const LOWEST = 3;
const HIGHEST = 14;
/** Numbers of different colours. */
const HEAT_SHADES = 32;

export class HeatMap {
  constructor(app, profile, tooltip) {
    this.app = app;
    this.times = profile.times;
    this.tooltip = tooltip;
    this.canvas = el('canvas', {
      class: 'heat',
      tabindex: '0',
      role: 'application',
      'aria-label': 'Heat map: arrows choose a cell, Shift extends, Enter shows its time alone',
    });
    this.cellText = el('output', { class: 'heat-cell', 'aria-live': 'polite' });
    this.caption = el('div', { class: 'strip-caption' });
    this.scale = el('span');
    this.element = el(
      'section',
      { class: 'heatmap', 'aria-label': 'Heat map of intervals' },
      this.canvas,
      this.caption,
      el('div', { class: 'heat-line' }, this.cellText, this.scale),
    );
    /** The cells from which and to which a drag or the keyboard has come. */
    this.from = 0;
    this.to = 0;
    this.isDragged = false;
    this.canvas.addEventListener('pointerdown', (event) => this.#begin(event));
    this.canvas.addEventListener('pointermove', (event) => this.#move(event));
    this.canvas.addEventListener('pointerup', () => this.#finish());
    this.canvas.addEventListener('pointercancel', () => this.#cancel());
    this.canvas.addEventListener('pointerleave', () => this.tooltip.hide());
    this.canvas.addEventListener('keydown', (event) => this.#key(event));
    this.canvas.addEventListener('focus', () => this.draw());
    this.canvas.addEventListener('blur', () => this.draw());
  }

  show(model, state, colours) {
    Object.assign(this, { model, state, colours });
    this.#arrange();
    this.#showCaption();
    this.#showScale();
    this.draw();
  }

  focus() {
    const { window } = this.state;
    this.#place(window ? this.layout.cellOf(window[0]) : 0, false);
    this.canvas.focus();
  }

  #arrange() {
    const width = this.element.clientWidth - this.#padding();
    this.layout = new HeatLayout(
      this.times,
      Math.max(1, Math.min(COLUMNS_MOST, Math.floor(width / NARROWEST))),
    );
    const { columns, rows, cells } = this.layout;
    /** The width and the height of a cell. */
    this.cell = Math.max(NARROWEST, Math.min(WIDEST, Math.floor(width / columns)));
    this.high = Math.max(LOWEST, Math.min(HIGHEST, Math.floor(MAP_PIXELS / rows)));
    this.from = Math.min(this.from, cells - 1);
    this.to = Math.min(this.to, cells - 1);
    this.sums = sumsOfParts(
      this.model.selection.stepSums,
      cells,
      (step) => this.layout.cellOf(step),
      this.model.type.snapshot,
    );
    this.largest = this.sums.reduce((most, value) => Math.max(most, value), 0);
    this.shades = Array.from({ length: HEAT_SHADES + 1 }, (_, shade) => this.#shade(shade / HEAT_SHADES));
  }

  #padding() {
    const { paddingLeft, paddingRight } = getComputedStyle(this.element);
    return parseFloat(paddingLeft) + parseFloat(paddingRight);
  }

  #showCaption() {
    const { layout, times } = this;
    const length = (steps) => formatValue(steps * times.stepMs, 'milliseconds');
    this.caption.replaceChildren(
      el('span', { text: stepTime(times, 0) }),
      el('span', {
        text: `column ${length(layout.ofColumn)}, cell ${length(layout.ofCell)}`,
        title: 'Drag, or choose cells by arrows and Enter',
      }),
      el('span', { text: stepTime(times, times.count) }),
    );
  }

  /** Shows the legend of the colours: from nothing to the largest value of a cell. */
  #showScale() {
    const colours = [this.colours.quietest, ...[0.25, 0.5, 0.75, 1].map((share) => this.#shade(share))];
    const samples = colours.map((colour) => {
      const sample = el('span', { class: 'sample' });
      sample.style.background = colour;
      return sample;
    });
    const largest = formatValue(this.largest, this.model.type.unit);
    this.scale.replaceChildren('0 ', ...samples, `${largest} a cell`);
  }

  draw() {
    const { canvas, layout, cell, high, times } = this;
    if (!layout) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    canvas.style.width = `${layout.columns * cell}px`;
    canvas.style.height = `${layout.rows * high}px`;
    canvas.width = Math.round(layout.columns * cell * ratio);
    canvas.height = Math.round(layout.rows * high * ratio);
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const hasFocus = document.activeElement === canvas;
    const isChoosing = this.isDragged || (hasFocus && this.from !== this.to);
    const [from, to] = isChoosing
      ? layout.windowOf(this.from, this.to)
      : (this.state.window ?? [0, times.count]);
    for (let at = 0; at < layout.cells; at++) {
      const [start, end] = layout.windowOf(at, at);
      context.globalAlpha = end > from && start < to ? 1 : 0.3;
      const share = this.largest > 0 ? this.sums[at] / this.largest : 0;
      context.fillStyle = share > 0 ? this.shades[Math.ceil(share * HEAT_SHADES)] : this.colours.quietest;
      context.fillRect(this.#left(at), this.#top(at), cell - 1, high - (high > LOWEST ? 1 : 0));
    }
    context.globalAlpha = 1;
    if (hasFocus && !this.isDragged) {
      context.strokeStyle = this.colours.accent;
      context.lineWidth = 2;
      context.strokeRect(this.#left(this.to), this.#top(this.to), cell - 1, high);
    }
  }

  #left(cell) {
    return Math.floor(cell / this.layout.rows) * this.cell;
  }

  #top(cell) {
    return (cell % this.layout.rows) * this.high;
  }

  /** From pale yellow to red; on a dark page from dim to bright. */
  #shade(share) {
    const [low, high] = this.colours.isDark ? [22, 62] : [90, 42];
    const lightness = low + (high - low) * share ** 0.75;
    return `hsl(${Math.round(48 - 42 * share)} ${Math.round(60 + 30 * share)}% ${lightness}%)`;
  }

  #cellAt(event) {
    const area = this.canvas.getBoundingClientRect();
    const within = (position, count) => Math.max(0, Math.min(count - 1, Math.floor(position)));
    const column = within((event.clientX - area.left) / this.cell, this.layout.columns);
    const row = within((event.clientY - area.top) / this.high, this.layout.rows);
    return Math.min(this.layout.cells - 1, column * this.layout.rows + row);
  }

  #valueText(from, to) {
    const { selection, type } = this.model;
    const [value] = sumsOfParts(selection.stepSums.subarray(from, to), 1, () => 0, type.snapshot);
    return formatValue(value, type.unit);
  }

  #begin(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.isDragged = true;
    this.#place(this.#cellAt(event), false);
  }

  #move(event) {
    const cell = this.#cellAt(event);
    if (this.isDragged && cell !== this.to) {
      this.#place(cell, true);
    }
    const [from, to] = this.layout.windowOf(cell, cell);
    const lines = [stepTime(this.times, from), this.#valueText(from, to)];
    this.tooltip.showText(lines, event.clientX + 12, event.clientY + 16);
  }

  #finish() {
    if (this.isDragged) {
      this.isDragged = false;
      this.#choose();
    }
  }

  #cancel() {
    this.isDragged = false;
    this.#place(this.to, false);
  }

  #choose() {
    const chosen = this.layout.windowOf(this.from, this.to);
    this.#place(this.to, false);
    this.app.chooseWindow(chosen);
  }

  /** Goes to a cell. The cells from where the extension began stay chosen if `isExtended` is set. */
  #place(cell, isExtended) {
    this.to = cell;
    if (!isExtended) {
      this.from = cell;
    }
    const [from, to] = this.layout.windowOf(this.from, this.to);
    const time = [from, to].map((step) => stepTime(this.times, step)).join(' – ');
    this.cellText.textContent = `${time} · ${this.#valueText(from, to)}`;
    this.draw();
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const moves = new Map([
      ['ArrowDown', 1],
      ['ArrowUp', -1],
      ['ArrowRight', this.layout.rows],
      ['ArrowLeft', -this.layout.rows],
      ['Home', -Infinity],
      ['End', Infinity],
    ]);
    if (moves.has(event.key)) {
      const to = this.to + moves.get(event.key);
      this.#place(Math.max(0, Math.min(this.layout.cells - 1, to)), event.shiftKey);
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.#choose();
    } else if (event.key === 'Escape') {
      this.#escape();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Gives up the extension, else the window, else the focus. */
  #escape() {
    if (this.from !== this.to) {
      this.#place(this.to, false);
    } else if (this.state.window) {
      this.app.chooseWindow(null);
    } else {
      this.canvas.blur();
    }
  }
}
