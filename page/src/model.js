// From the profile and the state of the view to the graphs that are drawn. Each stage is kept until its input
// changes: selection of rows, filters, graphs.

import { calleesTree } from './callees.js';
import { callersTree, invertedTree, outermostCalls } from './callers.js';
import { keepElided, sideFactors, weightedSums, widthWeights } from './diff.js';
import { NARROW_PIXELS } from './boxes.js';
import { kindShares, kindSums, stackCodes } from './kinds.js';
import { compileSearch, matchingFrames, onlyFrame } from './search.js';
import { admittedSets, labelSums, select } from './selection.js';
import { byThread } from './threads.js';
import { timeOrder } from './timeorder.js';
import { functionSums, keepTowers, removeTowers, towers, towerSum } from './towers.js';
import { prefixSums } from './tree.js';

/** A value that is computed again when its key changes. */
class Stage {
  get(key, compute) {
    if (this.key !== key) {
      this.key = undefined;
      this.value = undefined;
      this.value = compute();
      this.key = key;
    }
    return this.value;
  }
}

export class Model {
  constructor(profile) {
    this.profile = profile;
    this.stages = {};
    for (const name of [
      'source',
      'selection',
      'filtered',
      'shown',
      'search',
      'graphs',
      'functions',
      'matchSum',
      'codes',
      'kinds',
    ]) {
      this.stages[name] = new Stage();
    }
  }

  /** Takes a state. `pixels`: the width of the graph, below which boxes of lazy trees are not expanded. */
  update(state, pixels) {
    this.state = state;
    this.pixels = Math.max(1, pixels);
    this.#search();
    this.source = this.sourceOf(state);
    this.#select();
    this.#filter();
    this.#show();
    return this;
  }

  get type() {
    return this.profile.types[this.state.type];
  }

  #search() {
    const { search } = this.state;
    const { regex, error, matches } = this.stages.search.get(search, () => {
      const compiled = compileSearch(search);
      return { ...compiled, matches: compiled.regex ? matchingFrames(this.profile, compiled.regex) : null };
    });
    this.regex = regex;
    this.searchError = error;
    /** 1 for each frame that the search matches; null without a search. */
    this.matches = matches;
  }

  /** The key of the tree of a state: each type has a tree of its own by thread. */
  #sourceKey({ threads, type }) {
    return threads && this.profile.threadLabel !== -1 ? `threads ${type}` : '';
  }

  /** The tree and the rows that a state shows: those of the profile, or those of each thread. */
  sourceOf(state) {
    const key = this.#sourceKey(state);
    return this.stages.source.get(key, () =>
      key === '' ? this.profile : byThread(this.profile, state.type),
    );
  }

  #select() {
    const { type, labels, window } = this.state;
    const chosen = [...labels].map(([label, values]) => [label, [...values].sort((a, b) => a - b)]);
    this.selectionKey = JSON.stringify([
      this.#sourceKey(this.state),
      type,
      chosen.sort((a, b) => a[0] - b[0]),
      window,
    ]);
    this.selection = this.stages.selection.get(this.selectionKey, () =>
      select(this.source, type, labels, window),
    );
  }

  /** Focused and removed frames. */
  #filter() {
    const { filters } = this.state;
    this.filterKey = this.selectionKey + JSON.stringify(filters);
    const { sums, self } = this.stages.filtered.get(this.filterKey, () => {
      const self = this.#filterSelf(this.selection.self);
      return { self, sums: self.map(prefixSums) };
    });
    this.filteredSelf = self;
    /** Sums of each side, from which all shares are taken. */
    this.sums = sums;
    this.totals = sums.map((ofSide) => ofSide[ofSide.length - 1]);
  }

  #filterSelf(self) {
    const { filters } = this.state;
    if (filters.length === 0) {
      return self;
    }
    const copies = self.map((values) => values.slice());
    for (const { keep, frame } of filters) {
      const set = onlyFrame(this.profile, frame);
      (keep ? keepTowers : removeTowers)(this.source.tree, copies, set);
    }
    return copies;
  }

  /** The sums that are drawn: without the towers that a switch hides. */
  #show() {
    const { onlyMatches, elided, search } = this.state;
    const isElided = elided && this.profile.sides === 2;
    const isOnly = onlyMatches && this.matches !== null;
    this.shownKey = this.filterKey + JSON.stringify([isElided, isOnly ? search : null]);
    this.shownSums = this.stages.shown.get(this.shownKey, () => {
      if (!isElided && !isOnly) {
        return this.sums;
      }
      const { tree } = this.source;
      const self = this.filteredSelf.map((values) => values.slice());
      if (isElided) {
        keepElided(tree, this.sums, self);
      }
      if (isOnly) {
        keepTowers(tree, self, this.matches);
      }
      return self.map(prefixSums);
    });
    this.#weigh(isElided);
  }

  #weigh(isElided) {
    const { diffMode, diffWidth } = this.state;
    this.factors =
      this.profile.sides === 2 ? sideFactors(diffMode, this.totals, this.profile.header.sideSeconds) : [1];
    this.weights =
      this.profile.sides === 2 ? widthWeights(isElided ? 'base' : diffWidth, this.factors) : [1];
    /** The weighted total of the selection: the whole of a share. */
    this.whole = this.weights.reduce((sum, weight, side) => sum + weight * this.totals[side], 0);
  }

  /** The graphs of the view, from top to bottom: one, or callers and callees of a sandwich. */
  graphs() {
    const { view, sandwich, thread, diffMode, diffWidth } = this.state;
    const key = this.shownKey + JSON.stringify([view, sandwich, thread, diffMode, diffWidth]);
    return this.stages.graphs.get(key, () => {
      switch (view) {
        case 'inverted':
          return [
            this.#lazyGraph(
              'inverted',
              invertedTree(this.source.tree, this.shownSums, this.profile.frames),
            ),
          ];
        case 'sandwich':
          return sandwich >= 0 ? this.#sandwichGraphs(sandwich) : [this.#mainGraph()];
        case 'order':
          return [this.#orderGraph(thread)];
        default:
          return [this.#mainGraph()];
      }
    });
  }

  #mainGraph() {
    const { tree } = this.source;
    const widths = weightedSums(this.shownSums, this.weights);
    return { role: 'main', tree, sums: this.shownSums, widths, whole: this.whole, rootFrame: -1 };
  }

  #lazyGraph(role, lazy, rootFrame = -1) {
    const graph = { role, lazy, whole: this.whole, rootFrame };
    this.#expand(graph, 0);
    return graph;
  }

  #sandwichGraphs(frame) {
    const { tree, frames } = this.source;
    const calls = outermostCalls(tree, this.shownSums, frame);
    return [
      this.#lazyGraph('callers', callersTree(tree, this.shownSums, frames, frame, calls), frame),
      this.#lazyGraph('callees', calleesTree(tree, this.shownSums, frames, frame, calls), frame),
    ];
  }

  #orderGraph(thread) {
    const { source: profile, state } = this;
    const chosen = new Map(state.labels);
    if (profile.threadLabel !== -1) {
      chosen.set(profile.threadLabel, new Set([thread]));
    }
    const admitted = admittedSets(profile, chosen);
    const kept = this.#filterSelf([new Float64Array(profile.tree.count).fill(1)]);
    if (state.onlyMatches && this.matches) {
      keepTowers(profile.tree, kept, this.matches);
    }
    const window = state.window ?? [0, profile.times ? profile.times.count : 1];
    const order = timeOrder(profile, state.type, admitted, window, (node) => kept[0][node] > 0);
    const { tree, self, lengths } = order;
    const sums = prefixSums(self);
    const whole = sums[sums.length - 1];
    return { role: 'order', tree, sums: [sums], widths: prefixSums(lengths), whole, rootFrame: -1, window };
  }

  /**
   * Expands a lazy graph so that every box is there that is wide enough when `node` fills the width. Returns
   * the node's number afterwards.
   */
  zoomInto(graph, node) {
    return graph.lazy ? this.#expand(graph, graph.ids[node]) : node;
  }

  #expand(graph, id) {
    const { lazy } = graph;
    const threshold = (lazy.width(id, this.weights) * NARROW_PIXELS) / this.pixels;
    const before = lazy.count;
    lazy.expandVisible(id, threshold, this.weights);
    if (!graph.tree || lazy.count !== before) {
      Object.assign(graph, lazy.flatten());
      graph.widths = weightedSums(graph.sums, this.weights);
    }
    return graph.ids.indexOf(id);
  }

  /** Expands all of a lazy graph. */
  complete(graph) {
    if (graph.lazy) {
      // Every side counts, also one without a part in the widths.
      graph.lazy.expandVisible(
        0,
        0,
        this.weights.map(() => 1),
      );
      Object.assign(graph, graph.lazy.flatten());
      graph.widths = weightedSums(graph.sums, this.weights);
    }
    return graph;
  }

  /** Self and total of each function, for each side, at and below a node of the profile's tree. */
  functions(top = 0) {
    return this.stages.functions.get(`${this.filterKey}\n${top}`, () =>
      this.sums.map((sums) => functionSums(this.source.tree, sums, this.profile.frames, top)),
    );
  }

  /** The sum of each kind of code, for each side. Null if the profile is not a JVM's. */
  kindSums() {
    const { source } = this;
    if (!source.header.kinds) {
      return null;
    }
    return this.stages.kinds.get(this.filterKey, () => {
      const codes = this.stages.codes.get(source.tree, () => stackCodes(source, source.tree));
      const rows = source.rows(this.state.type);
      return this.filteredSelf.map((self, side) =>
        kindSums(source, codes, self, rows, this.selection.vmRows[side]),
      );
    });
  }

  /** The shares of the kinds of code, for each side; none for a profile that is not a JVM's. */
  kindShares() {
    const { kinds } = this.profile.header;
    return (this.kindSums() ?? []).map((sums, side) => kindShares(kinds.names, sums, this.totals[side]));
  }

  /** The weighted sum, share and number of the towers that match. Null without a search. */
  matchSum() {
    if (!this.matches) {
      return null;
    }
    const key = this.filterKey + JSON.stringify([this.state.search, this.weights]);
    return this.stages.matchSum.get(key, () => {
      const widths = weightedSums(this.sums, this.weights);
      return { ...towerSum(this.source.tree, widths, this.matches), whole: this.whole };
    });
  }

  /** The outermost matching nodes of a graph, the widest first. */
  matchNodes(graph) {
    if (!this.matches || !graph) {
      return new Int32Array(0);
    }
    const { found } = graph;
    if (found?.matches !== this.matches || found.tree !== graph.tree) {
      const { tree, widths } = graph;
      const width = (node) => widths[tree.end[node]] - widths[node];
      const nodes = towers(tree, widths, this.matches);
      nodes.sort((left, right) => width(right) - width(left) || left - right);
      graph.found = { matches: this.matches, tree: graph.tree, nodes };
    }
    return graph.found.nodes;
  }

  /** The sum of each value of a label under the choice of the others. */
  labelSums(label) {
    return labelSums(this.profile, this.selection.setSums, this.state.labels, label);
  }
}
