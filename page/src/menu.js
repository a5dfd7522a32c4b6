// The menu of actions on a function, in the graph and in the table.

import { el, placeAt } from './dom.js';

export class Menu {
  constructor() {
    this.element = el('div', { class: 'menu', role: 'menu', hidden: true });
    document.addEventListener('pointerdown', (event) => {
      if (!this.element.contains(event.target)) {
        this.hide();
      }
    });
    this.element.addEventListener('keydown', (event) => this.#key(event));
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** Opens with `items`: `[text, key, action]`. */
  open(title, items, x, y) {
    this.opener = document.activeElement;
    const entries = items.map(([text, key, action]) =>
      el(
        'button',
        { type: 'button', role: 'menuitem', on: { click: () => this.#run(action) } },
        el('span', { text }),
        el('kbd', { text: key }),
      ),
    );
    this.element.replaceChildren(el('div', { class: 'menu-title', text: title }), ...entries);
    this.element.hidden = false;
    placeAt(this.element, x, y);
    entries[0]?.focus();
  }

  #run(action) {
    this.hide();
    action();
  }

  #key(event) {
    const entries = [...this.element.querySelectorAll('button')];
    const at = entries.indexOf(document.activeElement);
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const step = event.key === 'ArrowDown' ? 1 : entries.length - 1;
      entries[(at + step) % entries.length].focus();
    } else if (event.key === 'Escape') {
      this.hide();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  hide() {
    if (this.isOpen) {
      this.element.hidden = true;
      this.opener?.focus?.({ preventScroll: true });
    }
  }
}
