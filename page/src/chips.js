// The row of what is chosen: focused and removed functions, window, zoom, sandwich; each can be taken back.

import { button, el } from './dom.js';
import { stepTime } from './format.js';

export class Chips {
  constructor(app, profile) {
    this.app = app;
    this.profile = profile;
    this.element = el('div', { class: 'chips', hidden: true });
  }

  show(state) {
    const { app, profile } = this;
    const chips = [];
    const chip = (kind, text, onRemove, title = text) =>
      chips.push(
        el(
          'span',
          { class: `chip ${kind}`, title },
          el('span', { class: 'kind', text: kind }),
          el('span', { class: 'text' }, el('bdi', { text })),
          button('✕', `Take back: ${kind} ${text}`, onRemove),
        ),
      );
    if (state.view === 'sandwich' && state.sandwich >= 0) {
      chip('sandwich', profile.name(state.sandwich), () => app.setView('main'));
    }
    state.filters.forEach(({ keep, frame }, index) =>
      chip(keep ? 'focus' : 'remove', profile.name(frame), () =>
        app.set({ filters: state.filters.filter((_, other) => other !== index) }, true),
      ),
    );
    if (state.zoom.length > 0) {
      chip('zoom', profile.name(state.zoom[state.zoom.length - 1]), () => app.set({ zoom: [] }, true));
    }
    if (state.window) {
      const [from, to] = state.window.map((step) => stepTime(profile.times, step));
      chip('time', `${from} – ${to}`, () => app.chooseWindow(null));
    }
    this.element.replaceChildren(...chips);
    this.element.hidden = chips.length === 0;
  }
}
