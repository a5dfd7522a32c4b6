// The table of functions. Only the rows in sight are elements.

import { changeOf, changeText, valueText } from './describe.js';
import { BASE, NEW } from './diff.js';
import { button, el } from './dom.js';
import { formatShare } from './format.js';
import { packageName, shortName } from './names.js';

const TABLE_ROW_PIXELS = 24;

export class FunctionTable {
  constructor(app) {
    this.app = app;
    this.head = el('div', { class: 'row head', role: 'row' });
    this.body = el('div', { class: 'rows' });
    this.scroll = el(
      'div',
      { class: 'table-scroll', tabindex: '0', role: 'table', 'aria-label': 'Functions' },
      this.body,
    );
    this.note = el('div', { class: 'table-note' });
    this.element = el('section', { class: 'table' }, this.head, this.scroll, this.note);
    this.frames = new Uint32Array(0);
    this.selected = -1;
    this.scroll.addEventListener('scroll', () => this.#draw(), { passive: true });
    this.scroll.addEventListener('keydown', (event) => this.#key(event));
  }

  /** Shows the functions at and below a node of the profile's tree. */
  show(model, state, top = 0) {
    this.model = model;
    this.state = state;
    this.isPart = top > 0;
    const [first, second] = model.functions(top);
    const isDiff = model.profile.sides === 2;
    const next = isDiff ? second : first;
    this.columns = isDiff ? diffColumns(model, first, second) : plainColumns(model, first);
    this.scroll.classList.toggle('diff', isDiff);
    this.head.classList.toggle('diff', isDiff);
    this.#drawHead();
    const key = [model.filterKey, top, state.search, state.sort, state.ascending, state.diffMode].join('\n');
    if (this.key !== key) {
      this.key = key;
      this.frames = this.#sorted(first, next);
      this.selected = -1;
      this.scroll.scrollTop = 0;
    }
    this.#draw();
  }

  #sorted(first, next) {
    const { model, state, columns } = this;
    const frames = [];
    for (let frame = 0; frame < model.profile.frames; frame++) {
      const hasValue = first.total[frame] > 0 || next.total[frame] > 0;
      if (hasValue && (!model.matches || model.matches[frame] === 1)) {
        frames.push(frame);
      }
    }
    const column = columns.find(({ key }) => key === state.sort) ?? columns[1];
    const sign = state.ascending ? 1 : -1;
    if (column.key === 'name') {
      const name = (frame) => model.profile.name(frame);
      frames.sort(
        (left, right) => sign * (name(left) < name(right) ? -1 : name(left) > name(right) ? 1 : 0),
      );
    } else {
      // The change of a comparison is sorted by its size.
      const size = column.isChange ? (frame) => Math.abs(column.value(frame)) : column.value;
      const values = new Float64Array(model.profile.frames);
      frames.forEach((frame) => (values[frame] = size(frame)));
      frames.sort((left, right) => sign * (values[left] - values[right]) || left - right);
    }
    return Uint32Array.from(frames);
  }

  #drawHead() {
    const { state } = this;
    this.head.replaceChildren(
      ...this.columns.map(({ key, title }) => {
        const isSorted = state.sort === key;
        const arrow = isSorted ? (state.ascending ? ' ↑' : ' ↓') : '';
        return el('button', {
          type: 'button',
          class: key === 'name' ? 'name' : 'number',
          title: `Sort by ${title}`,
          'aria-sort': isSorted ? (state.ascending ? 'ascending' : 'descending') : 'none',
          text: title + arrow,
          on: { click: () => this.app.sortBy(key) },
        });
      }),
    );
  }

  #draw() {
    const { frames, scroll, body } = this;
    body.style.height = `${frames.length * TABLE_ROW_PIXELS}px`;
    const first = Math.max(0, Math.floor(scroll.scrollTop / TABLE_ROW_PIXELS) - 4);
    const last = Math.min(
      frames.length,
      Math.ceil((scroll.scrollTop + scroll.clientHeight) / TABLE_ROW_PIXELS) + 4,
    );
    const rows = [];
    for (let index = first; index < last; index++) {
      rows.push(this.#row(index));
    }
    body.replaceChildren(...rows);
    const count = frames.length.toLocaleString('en');
    const noun = frames.length === 1 ? 'function' : 'functions';
    const part = this.isPart ? ' in the zoomed box' : '';
    this.note.textContent = `${count} ${this.model?.matches ? 'matching ' : ''}${noun}${part}`;
  }

  #row(index) {
    const frame = this.frames[index];
    const { profile } = this.model;
    const [name, kind] = [profile.name(frame), profile.kinds[frame]];
    const cells = this.columns.slice(1).map((column) => {
      const parts = column.parts(frame);
      const cell = el(
        'span',
        { class: `number ${column.tone?.(frame) ?? ''}`, role: 'cell' },
        ...parts.map((text, at) => el('span', { class: at === 0 ? 'value' : 'share', text })),
      );
      if (column.bar) {
        cell.style.setProperty('--bar', `${Math.min(100, column.bar(frame) * 100)}%`);
      }
      return cell;
    });
    const row = el(
      'div',
      {
        class: index === this.selected ? 'row selected' : 'row',
        role: 'row',
        on: { click: () => this.#pick(index), contextmenu: (event) => this.#menu(event, index) },
      },
      el(
        'span',
        { class: 'name', role: 'cell', title: name },
        button(
          '⇅',
          'Callers and callees (sandwich)',
          (event) => {
            event.stopPropagation();
            this.app.sandwich(frame);
          },
          { class: 'small', tabindex: '-1' },
        ),
        el(
          'span',
          { class: 'text' },
          el('bdi', { text: shortName(name, kind) }),
          el('bdi', { class: 'package', text: packageName(name, kind) }),
        ),
      ),
      ...cells,
    );
    row.style.top = `${index * TABLE_ROW_PIXELS}px`;
    return row;
  }

  #pick(index) {
    this.selected = index;
    this.#draw();
    this.app.searchFrame(this.frames[index]);
  }

  #menu(event, index) {
    event.preventDefault();
    this.app.openFrameMenu(this.frames[index], event.clientX, event.clientY);
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / TABLE_ROW_PIXELS) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    const frame = this.frames[this.selected];
    if (event.key in steps && this.frames.length > 0) {
      const to = Math.max(0, Math.min(this.frames.length - 1, this.selected + steps[event.key]));
      this.selected = to;
      const top = to * TABLE_ROW_PIXELS;
      if (
        top < this.scroll.scrollTop ||
        top + TABLE_ROW_PIXELS > this.scroll.scrollTop + this.scroll.clientHeight
      ) {
        this.scroll.scrollTop = top - this.scroll.clientHeight / 2;
      }
      this.#draw();
    } else if (frame !== undefined && event.key === 'Enter') {
      this.app.sandwich(frame);
    } else if (frame !== undefined && event.key === ' ') {
      this.app.searchFrame(frame);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** The function of the selected row, or -1. */
  get frame() {
    return this.frames[this.selected] ?? -1;
  }
}

function plainColumns(model, sums) {
  const whole = model.totals[0];
  const column = (key, title, values) => ({
    key,
    title,
    value: (frame) => values[frame],
    parts: (frame) =>
      values[frame] === 0
        ? ['', '–']
        : [valueText(model, values[frame], 0), formatShare(values[frame], whole)],
    bar: (frame) => (whole > 0 ? values[frame] / whole : 0),
  });
  return [
    { key: 'name', title: 'Function' },
    column('self', 'Self', sums.self),
    column('total', 'Total', sums.total),
  ];
}

function diffColumns(model, base, next) {
  const [baseName] = model.profile.header.sideNames ?? ['base'];
  const text = (value, side) =>
    model.state.diffMode === 'share'
      ? formatShare(value, model.totals[side])
      : valueText(model, value, side);
  const side = (key, title, values, number) => ({
    key,
    title,
    value: (frame) => values[frame],
    parts: (frame) => [values[frame] === 0 ? '–' : text(values[frame], number)],
  });
  const change = (key, title, name) => {
    const values = (frame) => [base[name][frame], next[name][frame]];
    return {
      key,
      title,
      isChange: true,
      value: (frame) => changeOf(model, values(frame)),
      parts: (frame) => [changeText(model, values(frame))],
      tone: (frame) => {
        const size = changeOf(model, values(frame));
        return size > 0 ? 'grown' : size < 0 ? 'shrunk' : '';
      },
    };
  };
  return [
    { key: 'name', title: 'Function' },
    side('baseSelf', `Self, ${baseName}`, base.self, BASE),
    side('self', 'Self', next.self, NEW),
    change('changeSelf', 'Self ±', 'self'),
    side('baseTotal', `Total, ${baseName}`, base.total, BASE),
    side('total', 'Total', next.total, NEW),
    change('changeTotal', 'Total ±', 'total'),
  ];
}
