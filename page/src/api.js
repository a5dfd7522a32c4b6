// `window.otlpprof`: the values of the view, for tests and scripts.

export class Api {
  constructor(app, timings) {
    this.app = app;
    /** Milliseconds of the page's phases: `inflate`, `read`, `build`, `paint`, and `load` from the start. */
    this.timings = timings;
  }

  get header() {
    return this.app.profile.header;
  }

  get link() {
    return location.hash;
  }

  /**
   * Changes the view. Labels are `{ key: [value, …] }`, where null is no value; filters `{ keep, name }`;
   * `sandwich` is a name. Where a name is not enough, filters and sandwich take `[name, detail]`.
   */
  set(changes) {
    const { profile } = this.app;
    const frameOf = (wanted) => this.frames(...[wanted].flat())[0] ?? -1;
    const state = { ...changes };
    if (changes.labels) {
      state.labels = new Map(
        Object.entries(changes.labels).map(([key, values]) => {
          const label = profile.labels.findIndex((candidate) => candidate.key === key);
          return [label, new Set(values.map((value) => profile.labels[label].values.indexOf(value) + 1))];
        }),
      );
    }
    if (changes.filters) {
      state.filters = changes.filters.map(({ keep, name }) => ({ keep, frame: frameOf(name) }));
    }
    if (typeof changes.sandwich === 'string' || Array.isArray(changes.sandwich)) {
      state.sandwich = frameOf(changes.sandwich);
      state.view = state.sandwich >= 0 ? 'sandwich' : 'main';
    }
    if (typeof changes.type === 'string') {
      state.type = profile.types.findIndex(({ name }) => name === changes.type);
    }
    this.app.set(state);
  }

  /** The numbers of the frames with a name, and with a detail if one is given. */
  frames(name, detail) {
    const { profile } = this.app;
    const found = [];
    for (let frame = 0; frame < profile.frames; frame++) {
      if (profile.name(frame) === name && (detail === undefined || profile.detail(frame) === detail)) {
        found.push(frame);
      }
    }
    return found;
  }

  /**
   * The nodes of a graph in pre-order: `{ name, detail, level, parent, totals, self }`, with a value for each
   * side. All nodes of inverted and sandwich views, too. Self values have a meaning only in the main view.
   */
  nodes(index = 0) {
    const { app } = this;
    const graph = app.model.complete(app.model.graphs()[index]);
    app.render();
    const { tree, sums } = graph;
    const nodes = [];
    for (let node = 0; node < tree.count; node++) {
      const frame = node === 0 ? graph.rootFrame : tree.frame[node];
      nodes.push({
        name: frame < 0 ? (node === 0 ? 'all' : '') : app.profile.name(frame),
        detail: frame < 0 ? '' : app.profile.detail(frame),
        level: tree.level[node],
        parent: tree.parent[node],
        totals: sums.map((ofSide) => ofSide[tree.end[node]] - ofSide[node]),
        self: sums.map((ofSide) => ofSide[node + 1] - ofSide[node]),
      });
    }
    return nodes;
  }

  /** Each function with a value: `{ name, detail, self, total }`, with self and total of each side. */
  functions() {
    const sides = this.app.model.functions();
    const found = [];
    for (let frame = 0; frame < this.app.profile.frames; frame++) {
      const total = sides.map((side) => side.total[frame]);
      if (total.some((value) => value > 0)) {
        found.push({
          name: this.app.profile.name(frame),
          detail: this.app.profile.detail(frame),
          self: sides.map((side) => side.self[frame]),
          total,
        });
      }
    }
    return found;
  }

  /** The sum of each kind of code by its name, for each side; null if the profile is not a JVM's. */
  kinds() {
    const { names } = this.header.kinds ?? {};
    const sums = this.app.model.kindSums();
    return sums && sums.map((ofSide) => Object.fromEntries(names.map((name, at) => [name, ofSide[at]])));
  }

  /** The sum of the matching towers, their number and the whole; null without a search. */
  matches() {
    return this.app.model.matchSum();
  }

  /** `[value, sum]` of each value of a label under the choice of the others. */
  labelSums(key) {
    const label = this.app.profile.labels.findIndex((candidate) => candidate.key === key);
    const { values } = this.app.profile.labels[label];
    return [...this.app.model.labelSums(label)].map((sum, value) => [
      value === 0 ? '' : values[value - 1],
      sum,
    ]);
  }

  stepSums() {
    return [...this.app.model.selection.stepSums];
  }

  /** The node's box in the window's pixels, or null; `index` is the graph's. */
  boxOf(node, index = 0) {
    const canvas = this.app.pane.canvases[index];
    const box = canvas.boxOf(node);
    const area = canvas.canvas.getBoundingClientRect();
    return (
      box && { left: area.left + box.left, top: area.top + box.top, width: box.width, height: box.height }
    );
  }

  /** Scrolls to a node. */
  reveal(node, index = 0) {
    this.app.pane.canvases[index].reveal(node);
  }

  /** The node at a point of the window, or -1. */
  nodeAt(x, y, index = 0) {
    const canvas = this.app.pane.canvases[index];
    const area = canvas.canvas.getBoundingClientRect();
    return canvas.nodeAt(x - area.left, y - area.top);
  }

  /** The width of the graph in pixels. */
  get width() {
    return this.app.pane.canvases[0].width;
  }

  get zoom() {
    return this.app.pane.canvases.map((canvas) => canvas.zoom);
  }

  get selected() {
    return this.app.pane.activeCanvas.selected;
  }
}
