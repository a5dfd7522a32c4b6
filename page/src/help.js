// The overlay that lists keys and gestures.

import { button, el } from './dom.js';

const SECTIONS = [
  [
    'Graph',
    [
      ['Click', 'Zoom in; click the zoomed box again to go up'],
      ['Arrows', 'Select a box'],
      ['Enter', 'Zoom into the selected box'],
      ['Backspace', 'Zoom out to the parent'],
      ['0', 'Zoom out completely'],
      ['i', 'Icicle or flame: root at the top or at the bottom'],
      ['Right click, m', 'Menu of the box; long press on a touch screen'],
      ['Ctrl or Alt + click', 'Remove the function'],
    ],
  ],
  [
    'Functions',
    [
      ['s', 'Sandwich: callers and callees of the selected function'],
      ['f', 'Focus: only stacks with the function'],
      ['x', 'Remove: only stacks without the function'],
      ['u', 'Undo the last focus or removal'],
      ['t', 'Graph, table or both'],
    ],
  ],
  [
    'Search',
    [
      ['/', 'Search by regular expression; capital letters make case matter'],
      ['Enter', 'The widest match, then the next one'],
      ['n, Shift+n', 'Next match, match before'],
      ['o', 'Only stacks that match'],
      ['e', 'Search for the selected function'],
    ],
  ],
  [
    'Views',
    [
      ['v', 'Top down or inverted (bottom up)'],
      ['g', 'By thread: the name of the thread is the root of each stack'],
      ['h', 'Heat map: arrows choose a cell, Shift extends, Enter shows the time alone'],
      ['r', 'Time order of a thread'],
      ['[ and ]', 'Move the window of time'],
      ['{ and }', 'Halve or double the window'],
      ['w', 'All of the time'],
      ['p', 'Next profile type'],
      ['l', 'Choose values of a label; Tab goes on to the next one'],
      ['b', 'Comparison: only what the new side no longer has'],
      ['c', 'Next colours'],
      ['d', 'Light or dark'],
      ['Esc', 'Close, or leave sandwich, search and zoom'],
      ['?', 'This help'],
    ],
  ],
];

export class Help {
  constructor() {
    const sections = SECTIONS.map(([title, keys]) =>
      el(
        'section',
        {},
        el('h3', { text: title }),
        el(
          'dl',
          {},
          ...keys.flatMap(([key, text]) => [el('dt', {}, el('kbd', { text: key })), el('dd', { text })]),
        ),
      ),
    );
    this.element = el(
      'div',
      { class: 'overlay', hidden: true, on: { click: (event) => this.#click(event) } },
      el(
        'div',
        { class: 'help', role: 'dialog', 'aria-modal': 'true', 'aria-label': 'Help', tabindex: '-1' },
        el(
          'div',
          { class: 'help-head' },
          el('h2', { text: 'Keys' }),
          button('✕', 'Close', () => this.toggle(false)),
        ),
        el('div', { class: 'help-body' }, ...sections),
        el('p', {
          text:
            'The width of a box is the value of its function with all that the function calls. ' +
            'A box begins with its own (self) value. The address of the page reproduces the view.',
        }),
      ),
    );
  }

  get isOpen() {
    return !this.element.hidden;
  }

  toggle(isOpen = !this.isOpen) {
    if (isOpen && !this.isOpen) {
      this.opener = document.activeElement;
    }
    this.element.hidden = !isOpen;
    if (isOpen) {
      this.element.firstChild.focus();
    } else {
      this.opener?.focus?.();
    }
  }

  #click(event) {
    if (event.target === this.element) {
      this.toggle(false);
    }
  }
}
