// The strip of time: sums of steps as bars, and the window that is chosen by dragging.

import { el } from './dom.js';
import { formatRate, formatValue, stepTime } from './format.js';
import { sumsOfParts } from './timesums.js';

const HEIGHT = 44;

/** The window after a drag over two steps, in either direction. */
export function windowOf(one, other) {
  return [Math.min(one, other), Math.max(one, other) + 1];
}

/** The window moved by its own length times `direction`, within the steps. */
export function movedWindow(window, direction, count) {
  const length = window[1] - window[0];
  const from = Math.max(0, Math.min(count - length, window[0] + direction * length));
  return [from, from + length];
}

/** The window twice as long (`factor` 2) or half as long (0.5) around its middle, within the steps. */
export function resizedWindow(window, factor, count) {
  const length = Math.max(1, Math.min(count, Math.round((window[1] - window[0]) * factor)));
  const middle = (window[0] + window[1]) / 2;
  const from = Math.max(0, Math.min(count - length, Math.round(middle - length / 2)));
  return [from, from + length];
}

export class Timeline {
  constructor(app, profile, tooltip) {
    this.app = app;
    this.times = profile.times;
    this.tooltip = tooltip;
    this.canvas = el('canvas', { class: 'strip' });
    this.caption = el('div', { class: 'strip-caption' });
    this.element = el('section', { class: 'timeline', 'aria-label': 'Time' }, this.canvas, this.caption);
    this.canvas.addEventListener('pointerdown', (event) => this.#begin(event));
    this.canvas.addEventListener('pointermove', (event) => this.#move(event));
    this.canvas.addEventListener('pointerup', (event) => this.#finish(event));
    this.canvas.addEventListener('pointerleave', () => this.tooltip.hide());
    this.canvas.addEventListener('dblclick', () => this.app.chooseWindow(null));
    this.from = -1;
  }

  show(model, state, colours) {
    Object.assign(this, { model, state, colours });
    this.caption.replaceChildren(
      el('span', { text: stepTime(this.times, 0) }),
      el('span', { text: state.window ? 'double-click: all of the time' : 'drag to choose a window' }),
      el('span', { text: stepTime(this.times, this.times.count) }),
    );
    this.draw();
  }

  draw() {
    const { canvas, times, colours } = this;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(HEIGHT * ratio);
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, HEIGHT);
    const bars = this.#bars(Math.max(1, Math.min(times.count, Math.floor(width))));
    const most = bars.reduce((largest, bar) => Math.max(largest, bar), 0);
    const barWidth = width / bars.length;
    const [from, to] =
      this.from >= 0 ? windowOf(this.from, this.to) : (this.state.window ?? [0, times.count]);
    bars.forEach((value, bar) => {
      const height = most > 0 ? Math.max(value > 0 ? 1 : 0, (value / most) * (HEIGHT - 4)) : 0;
      const step = ((bar + 0.5) * times.count) / bars.length;
      context.fillStyle = step >= from && step < to ? colours.accent : colours.quiet;
      context.fillRect(
        bar * barWidth,
        HEIGHT - height,
        Math.max(1, barWidth - (barWidth > 3 ? 1 : 0)),
        height,
      );
    });
    this.#drawScale(context, most, (times.count / bars.length) * times.stepMs);
    if (to - from < times.count) {
      context.strokeStyle = colours.accent;
      const left = (from / times.count) * width;
      context.strokeRect(left + 0.5, 0.5, Math.max(2, ((to - from) / times.count) * width - 1), HEIGHT - 1);
    }
  }

  /** Writes at the top of the strip what its full height is: a bar of some milliseconds with this value. */
  #drawScale(context, most, ms) {
    if (most > 0) {
      context.font = '10px system-ui, -apple-system, "Segoe UI", Roboto, "Open Sans", sans-serif';
      context.textBaseline = 'top';
      const text = `peak ${formatRate(most, ms, this.model.type)}`;
      context.fillStyle = this.colours.page;
      context.globalAlpha = 0.8;
      context.fillRect(0, 0, context.measureText(text).width + 8, 14);
      context.globalAlpha = 1;
      context.fillStyle = this.colours.quietText;
      context.fillText(text, 4, 2);
    }
  }

  #bars(count) {
    const { stepSums } = this.model.selection;
    const barOf = (step) => Math.floor((step * count) / stepSums.length);
    return sumsOfParts(stepSums, count, barOf, this.model.type.snapshot);
  }

  #step(event) {
    const area = this.canvas.getBoundingClientRect();
    const step = Math.floor(((event.clientX - area.left) / area.width) * this.times.count);
    return Math.max(0, Math.min(this.times.count - 1, step));
  }

  #begin(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.from = this.#step(event);
    this.to = this.from;
    this.draw();
  }

  #move(event) {
    const step = this.#step(event);
    if (this.from >= 0) {
      this.to = step;
      this.draw();
    }
    const { selection, type } = this.model;
    const sum = selection.stepSums[step];
    const lines = [stepTime(this.times, step), formatValue(sum, type.unit)];
    if (!type.snapshot) {
      lines.push(formatRate(sum, this.times.stepMs, type));
    }
    this.tooltip.showText(lines, event.clientX + 12, event.clientY + 16);
  }

  #finish() {
    if (this.from < 0) {
      return;
    }
    const chosen = windowOf(this.from, this.to);
    this.from = -1;
    // A click without a drag is the first half of a double click, too.
    if (chosen[1] - chosen[0] > 1 || this.times.count <= 60) {
      this.app.chooseWindow(chosen);
    } else {
      this.draw();
    }
  }
}
