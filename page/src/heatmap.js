// The heat map of intervals: time runs down each column and on in the next one, so that periods show as
// patterns.

import { el } from './dom.js';
import { formatTime, formatValue } from './format.js';
import { windowOf } from './timeline.js';

const CELL_PIXELS = 11;
/** Lengths of a column, in milliseconds, that read well: 1 s, 10 s, 1 min, 10 min, 1 h, 1 day. */
const COLUMN_MS = [1e3, 1e4, 6e4, 6e5, 3.6e6, 8.64e7];
const ROWS_MOST = 16;

/** The number of steps in a column: a well-known length of time where one fits, and not too many columns. */
export function stepsOfColumn(stepMs, count, columnsMost) {
  const fewest = Math.max(1, Math.ceil(count / columnsMost));
  for (const length of COLUMN_MS) {
    const steps = Math.round(length / stepMs);
    if (steps >= Math.max(2, fewest) && steps <= ROWS_MOST) {
      return steps;
    }
  }
  return Math.max(fewest, Math.min(ROWS_MOST, Math.max(1, Math.round(Math.sqrt(count)))));
}

export class HeatMap {
  constructor(app, profile, tooltip) {
    this.app = app;
    this.times = profile.times;
    this.tooltip = tooltip;
    this.canvas = el('canvas', { class: 'heat' });
    this.note = el('div', { class: 'strip-caption' });
    this.element = el(
      'section',
      { class: 'heatmap', 'aria-label': 'Heat map of intervals' },
      this.canvas,
      this.note,
    );
    this.canvas.addEventListener('pointerdown', (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.from = this.#step(event);
      this.to = this.from;
      this.draw();
    });
    this.canvas.addEventListener('pointermove', (event) => this.#move(event));
    this.canvas.addEventListener('pointerup', () => this.#finish());
    this.canvas.addEventListener('pointerleave', () => this.tooltip.hide());
    this.from = -1;
  }

  show(model, state, colours) {
    Object.assign(this, { model, state, colours });
    this.draw();
  }

  draw() {
    const { canvas, times } = this;
    const width = this.element.clientWidth;
    const most = Math.max(1, Math.floor(width / CELL_PIXELS));
    this.rows = stepsOfColumn(times.stepMs, times.count, most);
    this.columns = Math.ceil(times.count / this.rows);
    this.cell = Math.max(2, Math.min(CELL_PIXELS * 2, width / this.columns));
    const ratio = window.devicePixelRatio || 1;
    canvas.style.width = `${this.columns * this.cell}px`;
    canvas.style.height = `${this.rows * CELL_PIXELS}px`;
    canvas.width = Math.round(this.columns * this.cell * ratio);
    canvas.height = Math.round(this.rows * CELL_PIXELS * ratio);
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { stepSums } = this.model.selection;
    const largest = stepSums.reduce((sum, value) => Math.max(sum, value), 0);
    const [from, to] =
      this.from >= 0 ? windowOf(this.from, this.to) : (this.state.window ?? [0, times.count]);
    for (let step = 0; step < times.count; step++) {
      const x = Math.floor(step / this.rows) * this.cell;
      const y = (step % this.rows) * CELL_PIXELS;
      context.globalAlpha = step >= from && step < to ? 1 : 0.3;
      context.fillStyle = this.#colour(largest > 0 ? stepSums[step] / largest : 0);
      context.fillRect(x, y, this.cell - 1, CELL_PIXELS - 1);
    }
    context.globalAlpha = 1;
    const duration = formatValue(this.rows * times.stepMs, 'milliseconds');
    this.note.replaceChildren(
      el('span', {
        text: `A column is ${duration}, a cell ${formatValue(
          times.stepMs,
          'milliseconds',
        )}. Click a cell, or drag from the first to the last.`,
      }),
    );
  }

  #colour(share) {
    const [low, high] = this.colours.isDark ? [22, 62] : [95, 42];
    if (share === 0) {
      return this.colours.quietest;
    }
    const lightness = low + (high - low) * Math.sqrt(share);
    return `hsl(${Math.round(48 - 42 * share)} ${Math.round(60 + 30 * share)}% ${lightness}%)`;
  }

  #step(event) {
    const area = this.canvas.getBoundingClientRect();
    const column = Math.max(
      0,
      Math.min(this.columns - 1, Math.floor((event.clientX - area.left) / this.cell)),
    );
    const row = Math.max(0, Math.min(this.rows - 1, Math.floor((event.clientY - area.top) / CELL_PIXELS)));
    return Math.min(this.times.count - 1, column * this.rows + row);
  }

  #move(event) {
    const step = this.#step(event);
    if (this.from >= 0) {
      this.to = step;
      this.draw();
    }
    const { startUnixMs, stepMs, count } = this.times;
    this.tooltip.showText(
      [
        formatTime(startUnixMs + step * stepMs, stepMs * count),
        formatValue(this.model.selection.stepSums[step], this.model.type.unit),
      ],
      event.clientX + 12,
      event.clientY + 16,
    );
  }

  #finish() {
    if (this.from >= 0) {
      const chosen = windowOf(this.from, this.to);
      this.from = -1;
      this.app.chooseWindow(chosen);
    }
  }
}
