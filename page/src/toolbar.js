// The controls above the graph: type, search, view, look.

import { hasSeconds } from './diff.js';
import { button, chooser, el, press } from './dom.js';
import { formatShare, formatValue } from './format.js';

/** The pause in typing after which the search runs. */
const TYPING_MS = 120;

export class Toolbar {
  constructor(app, profile) {
    this.app = app;
    this.profile = profile;
    this.#makeType();
    this.#makeSearch();
    this.#makeViews();
    this.#makeLook();
    this.#makeDiff();
    this.more = button('☰', 'Show or hide the controls', () => this.#toggleMore(), {
      class: 'more',
      'aria-expanded': 'false',
    });
    this.total = el('span', { class: 'total' });
    this.kinds = el('div', { class: 'kinds', title: 'Share of each kind of code of the selected samples' });
    const { title, selection } = profile.header;
    this.element = el(
      'header',
      { class: 'toolbar' },
      el(
        'div',
        { class: 'title-row' },
        el('h1', { text: title || 'Profile', title: title || 'Profile' }),
        selection
          ? el('span', { class: 'selection', text: selection, title: 'Filters of the command' })
          : null,
        this.type,
        this.total,
        this.search,
        this.more,
      ),
      this.kinds,
      el('div', { class: 'controls' }, this.views, this.thread, this.threads, this.diff, this.look),
    );
  }

  #makeType() {
    const options = this.profile.types.map(({ name, label }, index) => [index, label || name]);
    if (options.length === 1) {
      this.type = el('span', { class: 'type', text: options[0][1] });
      return;
    }
    this.type = chooser('Profile type', options, (index) => this.app.set({ type: Number(index) }, true));
    this.type.classList.add('type');
  }

  #makeSearch() {
    this.field = el('input', {
      type: 'search',
      placeholder: 'Search (regular expression)',
      'aria-label': 'Search',
      spellcheck: 'false',
      autocomplete: 'off',
    });
    let timer = 0;
    this.field.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.app.set({ search: this.field.value }), TYPING_MS);
    });
    this.field.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') {
        clearTimeout(timer);
        this.app.set({ search: this.field.value });
        this.app.stepMatch(event.shiftKey ? -1 : 1);
      }
    });
    this.found = el('output', { class: 'found', 'aria-live': 'polite' });
    this.before = button('‹', 'Match before (Shift+n)', () => this.app.stepMatch(-1), { class: 'step' });
    this.next = button('›', 'Next match (n)', () => this.app.stepMatch(1), { class: 'step' });
    this.only = button('Isolate', 'Show only stacks that match (o)', () =>
      this.app.set({ onlyMatches: !this.app.state.onlyMatches }),
    );
    this.search = el(
      'div',
      { class: 'search', role: 'search' },
      this.field,
      this.found,
      this.before,
      this.next,
      this.only,
    );
  }

  #makeViews() {
    const view = (name, text, title) => {
      const element = button(text, title, () => this.app.setView(name));
      element.dataset.view = name;
      return element;
    };
    const { times } = this.profile;
    const step = times ? formatValue(times.stepMs, 'milliseconds') : '';
    const orderTitle = `Time order of a thread (r); stacks within ${step} are in no order`;
    this.viewButtons = [
      view('main', 'Top down', 'Top down: callers above callees'),
      view('inverted', 'Inverted', 'Inverted: functions by self value, their callers below (v)'),
      view('sandwich', 'Sandwich', 'Sandwich: callers and callees of a function (s)'),
      times ? view('order', 'Time order', orderTitle) : null,
    ].filter(Boolean);
    this.views = el('div', { class: 'group', role: 'group', 'aria-label': 'View' }, ...this.viewButtons);
    const label = this.profile.labels[this.profile.threadLabel];
    const threads = (label?.values ?? []).map((name, index) => [index + 1, name]);
    this.thread = chooser('Thread', threads, (thread) =>
      this.app.set({ thread: Number(thread), zoomNode: 0 }, true),
    );
    this.thread.classList.add('thread');
    this.threads = label
      ? button('By thread', 'The name of the thread is the root of each stack (g)', () =>
          this.app.toggleThreads(),
        )
      : null;
  }

  #makeLook() {
    const isDiff = this.profile.sides === 2;
    this.flame = button('Flame', 'Root at the bottom (i)', () =>
      this.app.set({ flame: !this.app.state.flame }),
    );
    const colours = [
      ['kind', 'Colour: kind'],
      ['package', 'Colour: package'],
    ];
    this.colour = chooser(
      'Colours (c)',
      isDiff ? [['change', 'Colour: change'], ...colours] : colours,
      (colour) => this.app.set({ colour }),
    );
    const widths = [
      [0, 'All boxes'],
      ...[0.1, 0.5, 1, 5].map((percent) => [percent, `Boxes from ${percent} %`]),
    ];
    this.minimum = chooser('Hide boxes with a smaller share', widths, (percent) =>
      this.app.set({ minPercent: Number(percent) }),
    );
    this.heat = this.profile.times
      ? button('Heat map', 'Heat map of intervals (h)', () => this.app.toggleHeatMap())
      : null;
    this.panes = el(
      'div',
      { class: 'group', role: 'group', 'aria-label': 'Panes' },
      ...[
        ['graph', 'Graph'],
        ['table', 'Table'],
        ['both', 'Both'],
      ].map(([panes, text]) => {
        const element = button(text, `Show: ${text.toLowerCase()} (t)`, () => this.app.set({ panes }));
        element.dataset.panes = panes;
        return element;
      }),
    );
    this.theme = button('◐', 'Light or dark (d)', () => this.app.toggleTheme(), { class: 'round' });
    const help = button('?', 'Help (?)', () => this.app.help.toggle(), { class: 'round' });
    this.look = el(
      'div',
      { class: 'look' },
      this.flame,
      this.heat,
      this.colour,
      this.minimum,
      this.panes,
      this.theme,
      help,
    );
  }

  #makeDiff() {
    this.diff = el('div', { class: 'group plain', hidden: this.profile.sides !== 2 });
    if (this.profile.sides !== 2) {
      return;
    }
    const [base, next] = this.profile.header.sideNames ?? ['base', 'new'];
    const modes = [
      ['share', 'Compare shares'],
      ['raw', 'Compare raw values'],
    ];
    if (hasSeconds(this.profile.header.sideSeconds)) {
      modes.splice(1, 0, ['seconds', 'Compare per second']);
    }
    this.mode = chooser('Comparison', modes, (diffMode) => this.app.set({ diffMode }));
    this.width = chooser(
      'Width of boxes',
      [
        ['new', `Width: ${next}`],
        ['both', 'Width: both'],
        ['base', `Width: ${base}`],
      ],
      (diffWidth) => this.app.set({ diffWidth }),
    );
    this.elided = button('Gone', `Gone: only the calls of ${base} that ${next} no longer has`, () =>
      this.app.set({ elided: !this.app.state.elided }),
    );
    this.diff.append(this.mode, this.width, this.elided);
  }

  /** Shows or hides the controls of narrow screens. */
  #toggleMore(isWanted) {
    const isOpen = this.element.classList.toggle('open', isWanted);
    this.more.setAttribute('aria-expanded', String(isOpen));
    this.app.resized();
  }

  openControls() {
    this.#toggleMore(true);
  }

  focusSearch() {
    this.field.focus();
    this.field.select();
  }

  /** Shows the place of a match among those of the graph, from 0. */
  showStep(at, count) {
    const [place, all] = [at + 1, count].map((number) => number.toLocaleString('en'));
    this.found.textContent = `${this.share} · ${place} of ${all}`;
  }

  show(model, state) {
    this.type.value = String(state.type);
    this.total.textContent = model.totals
      .map((total, side) => {
        const text = formatValue(total, model.type.unit);
        return this.profile.sides === 2
          ? `${(this.profile.header.sideNames ?? ['base', 'new'])[side]} ${text}`
          : text;
      })
      .join(' → ');
    this.#showKinds(model);
    if (document.activeElement !== this.field) {
      this.field.value = state.search;
    }
    this.#showMatches(model);
    press(this.only, state.onlyMatches);
    for (const element of this.viewButtons) {
      press(element, element.dataset.view === state.view);
    }
    this.thread.hidden = state.view !== 'order' || this.thread.options.length === 0;
    this.thread.value = String(state.thread);
    if (this.threads) {
      press(this.threads, state.threads);
    }
    press(this.flame, state.flame);
    this.colour.value = state.colour;
    this.minimum.value = String(state.minPercent);
    if (this.heat) {
      press(this.heat, state.heatMap);
    }
    for (const element of this.panes.children) {
      press(element, element.dataset.panes === state.panes);
    }
    if (this.profile.sides === 2) {
      this.mode.value = state.diffMode;
      this.width.value = state.diffWidth;
      this.width.disabled = state.elided;
      press(this.elided, state.elided);
    }
  }

  #showKinds(model) {
    const sides = model.kindShares();
    const names = this.profile.header.sideNames ?? ['base', 'new'];
    this.kinds.replaceChildren(
      ...sides.map((shares, side) => {
        // A line breaks between kinds, not between a kind and its share.
        const parts = shares.map((share, at) => [
          at > 0 ? ' ' : '',
          el('span', { text: at < shares.length - 1 ? `${share},` : share }),
        ]);
        const name = sides.length === 2 ? [el('bdi', { text: names[side] }), ': '] : [];
        return el('div', {}, ...name, ...parts.flat());
      }),
    );
    this.kinds.hidden = sides.every((shares) => shares.length === 0);
  }

  #showMatches(model) {
    const sum = model.matchSum();
    this.field.classList.toggle('invalid', model.searchError !== null);
    this.field.title = model.searchError ?? '';
    this.share = sum ? formatShare(sum.sum, sum.whole) : '';
    const noun = sum?.number === 1 ? 'match' : 'matches';
    this.found.textContent = model.searchError
      ? 'not valid'
      : sum
        ? `${this.share} · ${sum.number.toLocaleString('en')} ${noun}`
        : '';
    for (const element of [this.before, this.next, this.only]) {
      element.disabled = sum === null;
    }
  }
}
