// The page: one state, one model, and the parts that show them. Every change of the view goes through `set`.

import { Chips } from './chips.js';
import { Palette } from './colours.js';
import { nodeFacts, nodeName } from './describe.js';
import { el } from './dom.js';
import { GraphPane } from './graphpane.js';
import { HeatMap } from './heatmap.js';
import { Help } from './help.js';
import { listenKeys } from './keyboard.js';
import { LabelSelectors } from './labels.js';
import { decodeState, encodeState } from './link.js';
import { Menu } from './menu.js';
import { Model } from './model.js';
import { exactly } from './search.js';
import { FunctionTable } from './table.js';
import { applyTheme, isDark, onSystemTheme } from './theme.js';
import { movedWindow, resizedWindow, Timeline } from './timeline.js';
import { Toolbar } from './toolbar.js';
import { Tooltip } from './tooltip.js';

/** Below this width of the window, table and graph are shown one at a time. */
const PHONE_PIXELS = 760;

export class App {
  constructor(profile) {
    this.profile = profile;
    this.model = new Model(profile);
    this.treeOf = (state) => this.model.sourceOf(state).tree;
    this.state = decodeState(profile, location.hash.slice(1), this.treeOf);
    this.tooltip = new Tooltip();
    this.menu = new Menu();
    this.help = new Help();
    this.pane = new GraphPane(this, this.tooltip);
    this.table = new FunctionTable(this);
    this.toolbar = new Toolbar(this, profile);
    this.labels = new LabelSelectors(this, profile);
    this.chips = new Chips(this, profile);
    this.timeline = profile.times ? new Timeline(this, profile, this.tooltip) : null;
    this.heatMap = profile.times ? new HeatMap(this, profile, this.tooltip) : null;
    this.facts = el('div', { class: 'facts', 'aria-live': 'polite' });
    this.legend = el('div', { class: 'legend' });
    this.status = el('footer', { class: 'status' }, this.facts, this.legend);
    this.panes = el('main', { class: 'panes' }, this.table.element, this.pane.element);
    this.matchAt = -1;
    const { about = '', notes = [] } = profile.header;
    document.title = profile.header.title || 'Profile';
    document.body.replaceChildren(
      this.toolbar.element,
      about === '' ? '' : el('p', { class: 'about', text: about }),
      profile.labels.length > 0 ? this.labels.element : '',
      notes.length > 0
        ? el(
            'details',
            { class: 'notes' },
            el('summary', { text: notes.length === 1 ? notes[0] : `${notes.length} notes: ${notes[0]}` }),
            ...notes.slice(notes.length === 1 ? 0 : 1).map((text) => el('p', { text })),
          )
        : '',
      this.timeline?.element ?? '',
      this.heatMap?.element ?? '',
      this.chips.element,
      this.panes,
      this.status,
      this.tooltip.element,
      this.menu.element,
      this.help.element,
    );
    listenKeys(this);
    onSystemTheme(() => this.render());
    window.addEventListener('resize', () => this.resized());
    window.addEventListener('popstate', () => this.#follow());
  }

  /** Follows the address: a link that was pasted, or the browser's way back. */
  #follow() {
    this.state = decodeState(this.profile, location.hash.slice(1), this.treeOf);
    this.render();
  }

  /** Changes parts of the state and shows them. A `step` is one that the browser's way back takes back. */
  set(changes, isStep = false) {
    this.state = { ...this.state, ...changes };
    if ('search' in changes || 'type' in changes) {
      this.matchAt = -1;
    }
    this.render();
    const fragment = encodeState(this.profile, this.state, this.treeOf);
    const address = `${location.pathname}${location.search}${fragment === '' ? '' : `#${fragment}`}`;
    if (fragment !== location.hash.slice(1)) {
      history[isStep ? 'pushState' : 'replaceState'](null, '', address);
    }
  }

  render() {
    const { state, model } = this;
    const colours = applyTheme(state.theme);
    this.panes.dataset.panes = state.panes;
    if (this.heatMap) {
      this.heatMap.element.hidden = !state.heatMap;
    }
    model.update(state, Math.max(this.pane.width, window.innerWidth / 2));
    if (!this.palette || this.palette.mode !== state.colour || this.palette.isDark !== colours.isDark) {
      this.palette = new Palette(this.profile, state.colour, colours.isDark);
    }
    this.legend.replaceChildren(
      ...this.palette.legend(model.source.usedKinds).map(([colour, text]) => {
        const sample = el('span', { class: 'sample' });
        sample.style.background = colour;
        return el('span', {}, sample, text);
      }),
    );
    this.toolbar.show(model, state);
    this.labels.show(model, state);
    this.chips.show(state);
    this.timeline?.show(model, state, colours);
    if (state.heatMap) {
      this.heatMap.show(model, state, colours);
    }
    this.pane.show(model, state, this.palette, colours.background);
    this.#renderTable();
    const [graph] = this.pane.graphs;
    this.describe(graph, this.pane.canvases[0].zoom);
  }

  /** The node of the profile's tree that fills the graph; 0 in views of other trees. */
  #zoomedNode() {
    const [graph] = this.pane.graphs;
    return graph.role === 'main' ? this.pane.canvases[0].zoom : 0;
  }

  /** The table is summed up after the graph is on the screen. */
  #renderTable() {
    cancelAnimationFrame(this.tableFrame);
    // Nobody waits for a table that is never drawn.
    this.endTable?.();
    const isShown = () => this.table.element.offsetParent !== null;
    this.tableDone = new Promise((resolve) => {
      this.endTable = resolve;
      this.tableFrame = requestAnimationFrame(() =>
        setTimeout(() => {
          if (isShown()) {
            this.table.show(this.model, this.state, this.#zoomedNode());
          }
          resolve();
        }),
      );
    });
  }

  resized() {
    cancelAnimationFrame(this.resizeFrame);
    this.resizeFrame = requestAnimationFrame(() => this.render());
  }

  /** Shows a node's facts in the status line. */
  describe(graph, node) {
    const facts = nodeFacts(this.model, graph, node).flatMap(([label, text]) => [
      el('span', { class: 'fact', text: label }),
      el('span', { text }),
    ]);
    this.facts.replaceChildren(
      el('b', {}, el('bdi', { text: nodeName(this.profile, graph, node) })),
      ...facts,
    );
  }

  zoomTo(index, node) {
    this.set(this.pane.zoomState(index, node), true);
  }

  zoomToSelected() {
    const { selected } = this.pane.activeCanvas;
    if (selected >= 0) {
      this.zoomTo(this.pane.active, selected);
    }
  }

  zoomOut() {
    const canvas = this.pane.activeCanvas;
    if (canvas.zoom > 0) {
      this.zoomTo(this.pane.active, canvas.tree.parent[canvas.zoom]);
    }
  }

  /** Calls `action` with the function that is selected in the table or the graph. */
  onFrame(action) {
    const isInTable = this.table.element.contains(document.activeElement);
    const canvas = this.pane.activeCanvas;
    const node = canvas.selected >= 0 ? canvas.selected : canvas.hovered;
    const frame = isInTable ? this.table.frame : node >= 0 ? canvas.frameOf(node) : -1;
    if (frame >= 0) {
      action(frame);
    }
  }

  addFilter(keep, frame) {
    this.set({ filters: [...this.state.filters, { keep, frame }], zoom: [] }, true);
  }

  searchFrame(frame) {
    const search = exactly(this.profile.name(frame));
    this.set({ search: this.state.search === search ? '' : search });
  }

  sandwich(frame) {
    this.set(
      {
        view: 'sandwich',
        sandwich: frame,
        zoom: [],
        zoomInCallers: false,
        panes: this.state.panes === 'table' ? 'graph' : this.state.panes,
      },
      true,
    );
  }

  setView(view) {
    const changes = { view, zoom: [], zoomNode: 0 };
    if (view === 'sandwich' && this.state.sandwich < 0) {
      // Without a selected function: the one with the largest self value.
      const sums = this.model.functions()[this.profile.sides - 1];
      changes.sandwich = sums.self.reduce(
        (best, value, frame) => (value > sums.self[best] ? frame : best),
        0,
      );
      this.onFrame((frame) => (changes.sandwich = frame));
    }
    if (view === 'order' && this.state.thread === 0) {
      changes.thread = this.#busiestThread();
    }
    this.set(changes, true);
  }

  #busiestThread() {
    const { threadLabel } = this.profile;
    if (threadLabel === -1) {
      return 0;
    }
    const sums = this.model.labelSums(threadLabel);
    return sums.reduce((best, value, thread) => (thread > 0 && value > sums[best] ? thread : best), 1);
  }

  /** Turns the switch `By thread`. Zoom, filters and sandwich stay as far as their frames exist. */
  toggleThreads() {
    const { profile, state } = this;
    if (profile.threadLabel === -1) {
      return;
    }
    const threads = !state.threads;
    const isKept = (frame) => !profile.isThread(frame);
    const changes = { threads, zoomNode: 0, filters: state.filters.filter(({ frame }) => isKept(frame)) };
    // A path from the root begins at another box. One from a function to its callers is still there.
    changes.zoom = threads && state.view === 'main' ? [] : state.zoom.filter(isKept);
    if (!isKept(state.sandwich)) {
      Object.assign(changes, { sandwich: -1, view: state.view === 'sandwich' ? 'main' : state.view });
    }
    this.set(changes, true);
  }

  openLabels() {
    if (this.labels.buttons.length > 0) {
      this.toolbar.openControls();
      this.labels.toggle(this.labels.order[0]);
    }
  }

  toggleHeatMap() {
    if (this.heatMap) {
      this.set({ heatMap: !this.state.heatMap });
      if (this.state.heatMap) {
        this.heatMap.focus();
      }
    }
  }

  toggleOrder() {
    if (this.profile.times) {
      this.setView(this.state.view === 'order' ? 'main' : 'order');
    }
  }

  chooseLabel(label, values) {
    const labels = new Map(this.state.labels);
    labels.delete(label);
    if (values.size > 0) {
      labels.set(label, values);
    }
    this.set({ labels, zoomNode: 0 }, true);
  }

  chooseWindow(chosen) {
    const isAll = chosen && chosen[0] === 0 && chosen[1] === this.profile.times.count;
    this.set({ window: isAll ? null : chosen, zoomNode: 0 }, true);
  }

  moveWindow(direction) {
    if (this.state.window) {
      this.chooseWindow(movedWindow(this.state.window, direction, this.profile.times.count));
    }
  }

  resizeWindow(factor) {
    if (this.profile.times) {
      const { count } = this.profile.times;
      this.chooseWindow(resizedWindow(this.state.window ?? [0, count], factor, count));
    }
  }

  /** Goes to the next match, or the one before, and zooms in where the match is too narrow to see. */
  stepMatch(step) {
    const index = Math.min(this.pane.active, this.pane.graphs.length - 1);
    const graph = this.pane.graphs[index];
    const nodes = this.model.matchNodes(graph);
    if (nodes.length === 0) {
      return;
    }
    const start = this.matchAt === -1 ? (step > 0 ? 0 : -1) : this.matchAt + step;
    this.matchAt = (start + nodes.length) % nodes.length;
    let node = nodes[this.matchAt];
    const canvas = this.pane.canvases[index];
    const box = canvas.boxOf(node);
    if (!box || box.width < 40) {
      this.set(this.pane.zoomState(index, node));
      // In a lazy graph the zoom may have given the node another number.
      node = canvas.zoom;
    }
    this.pane.selectNode(index, node);
    canvas.reveal(node);
    this.toolbar.showStep(this.matchAt, nodes.length);
  }

  sortBy(sort) {
    const isSame = this.state.sort === sort;
    this.set({ sort, ascending: isSame ? !this.state.ascending : sort === 'name' });
  }

  nextColour() {
    const colours = this.profile.sides === 2 ? ['change', 'kind', 'package'] : ['kind', 'package'];
    this.set({ colour: colours[(colours.indexOf(this.state.colour) + 1) % colours.length] });
  }

  nextPanes() {
    const panes = window.innerWidth < PHONE_PIXELS ? ['graph', 'table'] : ['both', 'graph', 'table'];
    this.set({ panes: panes[(panes.indexOf(this.state.panes) + 1) % panes.length] });
  }

  toggleTheme() {
    this.set({ theme: isDark(this.state.theme) ? 'light' : 'dark' });
  }

  openMenu(index, node, x, y) {
    const frame = this.pane.canvases[index].frameOf(node);
    const zoom = ['Zoom in', 'Enter', () => this.zoomTo(index, node)];
    if (frame < 0) {
      this.menu.open('all', [zoom], x, y);
    } else {
      this.openFrameMenu(frame, x, y, [zoom]);
    }
  }

  openFrameMenu(frame, x, y, first = []) {
    const name = this.profile.name(frame);
    this.tooltip.hide();
    this.menu.open(
      name,
      [
        ...first,
        ['Callers and callees', 's', () => this.sandwich(frame)],
        ['Focus: only stacks with it', 'f', () => this.addFilter(true, frame)],
        ['Remove: only stacks without it', 'x', () => this.addFilter(false, frame)],
        ['Search for it', 'e', () => this.searchFrame(frame)],
        ['Copy the name', '', () => navigator.clipboard?.writeText(name)],
      ],
      x,
      y,
    );
  }

  openSelectedMenu() {
    const canvas = this.pane.activeCanvas;
    const box = canvas.selected >= 0 ? canvas.boxOf(canvas.selected) : null;
    if (box) {
      const area = canvas.canvas.getBoundingClientRect();
      this.openMenu(
        this.pane.active,
        canvas.selected,
        area.left + Math.max(0, box.left),
        area.top + box.top + 22,
      );
    }
  }

  /** Closes the foremost thing: help, menu, sandwich, zoom, search. */
  escape() {
    if (this.help.isOpen) {
      this.help.toggle(false);
    } else if (this.menu.isOpen) {
      this.menu.hide();
    } else if (this.state.zoom.length > 0 || this.state.zoomNode > 0) {
      this.set({ zoom: [], zoomNode: 0 }, true);
    } else if (this.state.view === 'sandwich') {
      this.setView('main');
    } else if (this.state.search !== '') {
      this.set({ search: '', onlyMatches: false });
    }
  }
}
