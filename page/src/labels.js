// Selectors of labels: a button for each label that opens the list of its values with their sums.

import { button, el, press } from './dom.js';
import { formatShare, formatValue } from './format.js';
import { labelName, labelOrder } from './labelnames.js';

/** The width of the list, with the margin at its right. */
const PANEL_PIXELS = 332;
/** Values listed at most. Typing narrows the list. */
const LISTED = 200;
/** From this number of values on the list has a field to type in. */
const MANY = 8;

export class LabelSelectors {
  constructor(app, profile) {
    this.app = app;
    this.profile = profile;
    this.list = el('div', { class: 'values', role: 'listbox', 'aria-multiselectable': 'true' });
    this.field = el('input', {
      type: 'search',
      placeholder: 'Type to filter',
      'aria-label': 'Filter values',
    });
    this.head = el('div', { class: 'values-head' });
    this.panel = el(
      'div',
      { class: 'panel', hidden: true, role: 'dialog' },
      this.head,
      this.field,
      this.list,
    );
    this.field.addEventListener('input', () => this.#fill());
    this.panel.addEventListener('keydown', (event) => this.#key(event));
    this.buttons = profile.labels.map(({ key }, label) =>
      button('', `Choose values of ${key}`, () => this.toggle(label), {
        class: 'label',
        'aria-label': `Choose values of ${labelName(key)}`,
        data: { key },
        'aria-haspopup': 'dialog',
      }),
    );
    this.order = labelOrder(profile.labels.map(({ key }) => key));
    const buttons = this.order.map((label) => this.buttons[label]);
    this.element = el('div', { class: 'labels' }, ...buttons, this.panel);
    this.open = -1;
    document.addEventListener('pointerdown', (event) => {
      if (!this.element.contains(event.target)) {
        this.close();
      }
    });
  }

  show(model, state) {
    this.model = model;
    this.state = state;
    this.buttons.forEach((element, label) => {
      const { key, values } = this.profile.labels[label];
      const own = labelName(key);
      const chosen = [...(state.labels.get(label) ?? [])];
      const names = chosen.map((value) => (value === 0 ? '(none)' : values[value - 1]));
      element.textContent =
        names.length === 0
          ? `${own} ▾`
          : `${own}: ${names[0]}${names.length > 1 ? ` +${names.length - 1}` : ''} ▾`;
      press(element, names.length > 0);
    });
    if (this.open !== -1) {
      this.#fill();
    }
  }

  toggle(label) {
    if (this.open === label) {
      this.close();
      return;
    }
    this.open = label;
    this.field.value = '';
    this.field.hidden = this.profile.labels[label].values.length < MANY;
    this.panel.setAttribute('aria-label', labelName(this.profile.labels[label].key));
    this.panel.hidden = false;
    const left = this.buttons[label].offsetLeft;
    this.panel.style.left = `${Math.max(0, Math.min(left, this.element.offsetWidth - PANEL_PIXELS))}px`;
    this.#fill();
    (this.field.hidden ? this.list.querySelector('button') : this.field)?.focus();
  }

  close() {
    if (this.open !== -1) {
      const closed = this.open;
      this.open = -1;
      this.panel.hidden = true;
      if (this.panel.contains(document.activeElement)) {
        this.buttons[closed].focus();
      }
    }
  }

  #fill() {
    const label = this.open;
    const { values } = this.profile.labels[label];
    const sums = this.model.labelSums(label);
    const chosen = this.state.labels.get(label) ?? new Set();
    const typed = this.field.value.toLowerCase();
    const name = (value) => (value === 0 ? '(none)' : values[value - 1]);
    const numbers = [...sums.keys()].filter(
      (value) => (value > 0 || sums[0] > 0 || chosen.has(0)) && name(value).toLowerCase().includes(typed),
    );
    numbers.sort((left, right) => sums[right] - sums[left] || left - right);
    const whole = sums.reduce((sum, value) => sum + value, 0);
    const focused = this.list.contains(document.activeElement)
      ? document.activeElement.dataset.value
      : null;
    this.list.replaceChildren(
      ...numbers.slice(0, LISTED).map((value) => {
        const entry = el(
          'button',
          {
            type: 'button',
            role: 'option',
            data: { value },
            'aria-selected': String(chosen.has(value)),
            on: { click: () => this.#choose(label, value) },
          },
          el('span', { class: 'check', text: chosen.has(value) ? '✓' : '' }),
          el('span', { class: 'text', title: name(value), text: name(value) }),
          el('span', { class: 'sum', text: formatValue(sums[value], this.model.type.unit) }),
          el('span', { class: 'share', text: formatShare(sums[value], whole) }),
        );
        entry.style.setProperty('--bar', `${whole > 0 ? (sums[value] / whole) * 100 : 0}%`);
        return entry;
      }),
    );
    const more = numbers.length - LISTED;
    this.head.replaceChildren(
      el('span', {
        text: more > 0 ? `${more.toLocaleString('en')} more: type to filter` : `${numbers.length} values`,
      }),
      chosen.size === 0
        ? ''
        : button('All', 'Remove this filter', () => this.app.chooseLabel(label, new Set())),
    );
    if (focused !== null) {
      this.list.querySelector(`[data-value="${Number(focused)}"]`)?.focus();
    }
  }

  #choose(label, value) {
    const chosen = new Set(this.state.labels.get(label) ?? []);
    if (!chosen.delete(value)) {
      chosen.add(value);
    }
    this.app.chooseLabel(label, chosen);
  }

  #key(event) {
    const entries = [...this.list.querySelectorAll('button')];
    const at = entries.indexOf(document.activeElement);
    if (event.key === 'ArrowDown') {
      entries[Math.min(entries.length - 1, at + 1)]?.focus();
    } else if (event.key === 'ArrowUp') {
      (at <= 0 ? this.field : entries[at - 1]).focus();
    } else if (event.key === 'Escape') {
      this.close();
    } else if (event.key === 'Enter' && event.target === this.field) {
      entries[0]?.click();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
