// The pane of graphs: one canvas, or callers above callees in a sandwich.

import { BASE, NEW, relativeChange } from './diff.js';
import { nodeNames, nodeTotals } from './describe.js';
import { el } from './dom.js';
import { FlameCanvas } from './flamecanvas.js';

const LONG_PRESS_MS = 500;

export class GraphPane {
  /** `app` is asked to zoom and to open menus; `tooltip` is shown over boxes. */
  constructor(app, tooltip) {
    this.app = app;
    this.tooltip = tooltip;
    this.canvases = [new FlameCanvas(), new FlameCanvas()];
    this.captions = ['Callers', 'Callees'].map((text) => el('div', { class: 'caption', text }));
    this.element = el('section', { class: 'graphs', 'aria-label': 'Flame graph', tabindex: '0' });
    for (const canvas of this.canvases) {
      this.#listen(canvas);
    }
    this.graphs = [];
    /** The canvas with the selected node. */
    this.active = 0;
  }

  get width() {
    return this.element.clientWidth;
  }

  show(model, state, palette, background) {
    const graphs = model.graphs();
    this.model = model;
    if (graphs.length !== this.element.querySelectorAll('.scroll').length) {
      this.element.replaceChildren(
        ...graphs.flatMap((_, index) =>
          graphs.length === 1
            ? [this.canvases[index].element]
            : [this.captions[index], this.canvases[index].element],
        ),
      );
      this.element.classList.toggle('sandwich', graphs.length === 2);
    }
    if (graphs.some((graph, index) => graph !== this.graphs[index])) {
      this.active = 0;
      this.canvases.forEach((canvas) => canvas.select(-1));
    }
    this.graphs = graphs;
    graphs.forEach((graph, index) => {
      const canvas = this.canvases[index];
      const previousTree = graph.tree;
      const zoom = this.#zoomOf(graph, state);
      if (graph.tree !== previousTree) {
        canvas.select(-1);
      }
      const isFlame = graph.role === 'callers' ? true : graph.role === 'callees' ? false : state.flame;
      canvas.show(graph, zoom, {
        flame: isFlame,
        palette,
        matches: model.matches,
        minPercent: state.minPercent,
        background,
        namesOf: (own, node) => nodeNames(model.profile, own, node),
        fillOf: (own, node, frame) => this.#fill(palette, state, own, node, frame),
      });
    });
  }

  #fill(palette, state, graph, node, frame) {
    if (state.colour === 'change' && this.model.profile.sides === 2) {
      const totals = nodeTotals(graph, node);
      const { factors } = this.model;
      return palette.change(
        relativeChange(totals[BASE] * factors[BASE], totals[NEW] * factors[NEW]),
        frame,
      );
    }
    return frame < 0 ? palette.root : palette.frame(frame);
  }

  /** The zoomed node of a graph. The path is followed as far as nodes exist. */
  #zoomOf(graph, state) {
    if (graph.role === 'order') {
      return state.zoomNode < graph.tree.count ? state.zoomNode : 0;
    }
    const isOther =
      graph.role === 'callers' ? !state.zoomInCallers : graph.role === 'callees' && state.zoomInCallers;
    let node = 0;
    for (const frame of isOther ? [] : state.zoom) {
      // In lazy graphs a node's children exist only after a zoom into the node.
      let child = graph.tree.child(node, frame);
      if (child === -1 && graph.lazy) {
        node = this.model.zoomInto(graph, node);
        child = graph.tree.child(node, frame);
      }
      if (child === -1) {
        break;
      }
      node = child;
    }
    return this.model.zoomInto(graph, node);
  }

  /** The part of the state that zooms into a node. */
  zoomState(index, node) {
    const graph = this.graphs[index];
    if (graph.role === 'order') {
      return { zoomNode: node };
    }
    return {
      zoom: graph.tree.path(node).map((at) => graph.tree.frame[at]),
      zoomInCallers: graph.role === 'callers',
    };
  }

  #listen(canvas) {
    const index = this.canvases.indexOf(canvas);
    const element = canvas.element;
    const nodeOf = (event) => {
      const area = canvas.canvas.getBoundingClientRect();
      return canvas.graph ? canvas.nodeAt(event.clientX - area.left, event.clientY - area.top) : -1;
    };
    element.addEventListener('pointermove', (event) => {
      if (event.pointerType !== 'mouse') {
        return;
      }
      const node = nodeOf(event);
      canvas.hover(node);
      if (node === -1) {
        this.tooltip.hide();
      } else {
        this.tooltip.show(this.model, this.graphs[index], node, event.clientX + 14, event.clientY + 18);
      }
    });
    element.addEventListener('pointerleave', () => {
      canvas.hover(-1);
      this.tooltip.hide();
    });
    element.addEventListener('click', (event) => {
      const node = nodeOf(event);
      if (node === -1 || this.wasLongPress) {
        this.wasLongPress = false;
        return;
      }
      this.selectNode(index, node);
      if (event.ctrlKey || event.altKey || event.metaKey) {
        const frame = canvas.frameOf(node);
        if (frame >= 0) {
          this.app.addFilter(false, frame);
        }
      } else if (node === canvas.zoom && node !== 0) {
        this.app.zoomTo(index, canvas.tree.parent[node]);
      } else {
        this.app.zoomTo(index, node);
      }
    });
    element.addEventListener('contextmenu', (event) => {
      const node = nodeOf(event);
      if (node !== -1) {
        event.preventDefault();
        this.selectNode(index, node);
        this.app.openMenu(index, node, event.clientX, event.clientY);
      }
    });
    this.#listenLongPress(element, nodeOf, index);
  }

  /** Touch screens without an own long press open the menu after half a second. */
  #listenLongPress(element, nodeOf, index) {
    let timer = 0;
    const cancel = () => clearTimeout(timer);
    element.addEventListener('pointerdown', (event) => {
      cancel();
      this.wasLongPress = false;
      if (event.pointerType !== 'touch') {
        return;
      }
      const node = nodeOf(event);
      timer = setTimeout(() => {
        if (node !== -1) {
          this.wasLongPress = true;
          this.selectNode(index, node);
          this.app.openMenu(index, node, event.clientX, event.clientY);
        }
      }, LONG_PRESS_MS);
    });
    for (const name of ['pointerup', 'pointercancel', 'pointerleave']) {
      element.addEventListener(name, cancel);
    }
    element.addEventListener('scroll', cancel);
  }

  get activeCanvas() {
    return this.canvases[Math.min(this.active, this.graphs.length - 1)];
  }

  selectNode(index, node) {
    this.canvases.forEach((canvas, other) => canvas.select(other === index ? node : -1));
    this.active = index;
    this.app.describe(this.graphs[index], node);
  }

  /** Moves the selection: `up` and `down` on the screen, `left` and `right`. */
  move(direction) {
    const canvas = this.activeCanvas;
    const { tree, graph } = canvas;
    const from = canvas.selected === -1 ? canvas.zoom : canvas.selected;
    let to = from;
    const isToRoot = (direction === 'up') !== canvas.look.flame;
    if (canvas.selected === -1) {
      to = from;
    } else if (direction === 'up' || direction === 'down') {
      to = isToRoot ? tree.parent[from] : widestChild(graph, from);
      if (to === -1 && isToRoot && this.graphs.length === 2) {
        this.selectNode(1 - this.active, 0);
        return;
      }
    } else {
      to = neighbour(graph, canvas, from, direction === 'left' ? -1 : 1);
    }
    if (to !== -1 && canvas.boxOf(to)) {
      this.selectNode(this.active, to);
      canvas.reveal(to);
    }
  }
}

function widestChild(graph, node) {
  const { tree, widths } = graph;
  let best = -1;
  let most = 0;
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
    const width = widths[tree.end[child]] - widths[child];
    if (width > most && !(tree.frame[child] < 0)) {
      best = child;
      most = width;
    }
  }
  return best;
}

/** The next box of the level that is at least a pixel wide. */
function neighbour(graph, canvas, node, step) {
  const { tree } = graph;
  const level = tree.level[node];
  const nodes = tree.levelNodes;
  let low = tree.levelStart[level];
  let high = tree.levelStart[level + 1] - 1;
  const first = low;
  const last = high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (nodes[middle] < node) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (let at = low + step; at >= first && at <= last; at += step) {
    const box = canvas.boxOf(nodes[at]);
    if (!box) {
      return -1;
    }
    if (box.width >= 1 && !(tree.frame[nodes[at]] < 0)) {
      return nodes[at];
    }
  }
  return -1;
}
