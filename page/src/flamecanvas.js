// One flame graph on a canvas as large as the window on the graph, whatever the graph's depth.

import { deepestLevel, nodeAtPosition, PartBoxes } from './boxes.js';
import { el } from './dom.js';
import { fitting } from './format.js';

const ROW_PIXELS = 20;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Open Sans", sans-serif';
/** Boxes narrower than this have no text. */
const TEXT_PIXELS = 28;
const PADDING = 5;
const FADED = 0.38;

export class FlameCanvas {
  constructor() {
    this.canvas = el('canvas', { class: 'flame' });
    this.spacer = el('div', { class: 'spacer' });
    this.marker = el('div', { class: 'marker', hidden: true });
    this.hoverBox = el('div', { class: 'hover', hidden: true });
    this.empty = el('p', { class: 'empty', text: 'No values under this selection.', hidden: true });
    this.element = el(
      'div',
      { class: 'scroll' },
      this.spacer,
      el('div', { class: 'sticky' }, this.canvas, this.hoverBox, this.marker, this.empty),
    );
    this.context = this.canvas.getContext('2d', { alpha: false });
    this.letterWidths = new Float64Array(0);
    /** Boxes of the drawing that is under way, by colour: left, top and width of each. */
    this.boxes = new Map();
    this.fadedBoxes = new Map();
    this.texts = [];
    /** The boxes of the whole graph, kept for the way back from a zoom, and of the zoomed part. */
    this.whole = null;
    this.part = null;
    this.graph = null;
    this.zoom = 0;
    this.selected = -1;
    this.hovered = -1;
    this.element.addEventListener('scroll', () => this.draw(), { passive: true });
  }

  /** Takes a graph and its look: `{ flame, palette, matches, minPercent, fillOf, namesOf, background }`. */
  show(graph, zoom, look) {
    const isOther =
      graph !== this.graph ||
      zoom !== this.zoom ||
      look.flame !== this.look?.flame ||
      graph.tree !== this.tree;
    this.graph = graph;
    this.tree = graph.tree;
    this.zoom = zoom;
    this.look = look;
    if (isOther) {
      this.levels = deepestLevel(graph.tree, graph.widths, zoom) + 1;
      this.hovered = -1;
    }
    this.resize();
    if (isOther) {
      this.element.scrollTop = look.flame ? this.element.scrollHeight : this.#zoomScroll();
    }
    this.draw();
  }

  /** Scrolls deep zooms so that the zoomed box stays in sight. */
  #zoomScroll() {
    const level = this.tree.level[this.zoom];
    return level * ROW_PIXELS > this.height / 2 ? (level - 3) * ROW_PIXELS : 0;
  }

  resize() {
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(this.width * ratio);
    const height = Math.round(this.height * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.height}px`;
    }
    this.contentHeight = Math.max(this.height, (this.levels ?? 1) * ROW_PIXELS);
    this.spacer.style.height = `${this.contentHeight}px`;
  }

  /** The top of a level on the canvas, in pixels. */
  top(level) {
    const scroll = this.element.scrollTop;
    return (this.look.flame ? this.contentHeight - (level + 1) * ROW_PIXELS : level * ROW_PIXELS) - scroll;
  }

  levelAt(y) {
    const inContent = y + this.element.scrollTop;
    return Math.floor((this.look.flame ? this.contentHeight - inContent : inContent) / ROW_PIXELS);
  }

  /** The part of the graph's widths that is shown: `[begin, end]`. */
  range() {
    const { widths, tree } = this.graph;
    return [widths[this.zoom], widths[tree.end[this.zoom]]];
  }

  /** The width of the narrowest box that is shown, on the scale of the widths. */
  get narrowest() {
    const { role, widths, whole } = this.graph;
    // In time order widths are time: their sum is the whole.
    return (this.look.minPercent / 100) * (role === 'order' ? widths[widths.length - 1] : whole);
  }

  draw() {
    if (!this.graph || this.width <= 0) {
      return;
    }
    const { context, look } = this;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = look.background;
    context.fillRect(0, 0, this.width, this.height);
    context.font = FONT;
    context.textBaseline = 'middle';
    this.#measureLetters();
    const [begin, end] = this.range();
    this.empty.hidden = end > begin;
    if (end > begin) {
      const first = this.levelAt(look.flame ? this.height - 1 : 0);
      const last = this.levelAt(look.flame ? 0 : this.height - 1);
      for (let level = Math.max(0, first); level <= Math.min(last, this.levels - 1); level++) {
        this.#addLevel(level, begin, end);
      }
      this.#fillBoxes();
    }
    this.#place(this.marker, this.selected);
    this.#place(this.hoverBox, this.hovered);
  }

  #addLevel(level, begin, end) {
    const { graph, tree } = this;
    const zoomLevel = tree.level[this.zoom];
    if (level <= zoomLevel) {
      let node = this.zoom;
      for (let at = zoomLevel; at > level; at--) {
        node = tree.parent[node];
      }
      this.#addBox(node, this.top(level), 0, this.width, level < zoomLevel);
      return;
    }
    const least = this.narrowest;
    // To ask an element for its place costs more than to draw a box.
    const y = this.top(level);
    const boxes = this.#partBoxes(begin, end).ofLevel(level);
    for (let at = 0; at < boxes.length; at += 3) {
      const node = boxes[at];
      if (least === 0 || graph.widths[tree.end[node]] - graph.widths[node] >= least) {
        this.#addBox(node, y, boxes[at + 1], boxes[at + 2], false);
      }
    }
  }

  #partBoxes(begin, end) {
    const { tree, width } = this;
    const { widths } = this.graph;
    if (this.whole?.sums !== widths || this.whole.tree !== tree || this.whole.pixels !== width) {
      this.whole = new PartBoxes(tree, widths, 0, widths[widths.length - 1], width);
      this.part = null;
    }
    if (this.whole.isOf(begin, end, width)) {
      return this.whole;
    }
    if (!this.part?.isOf(begin, end, width)) {
      this.part = new PartBoxes(tree, widths, begin, end, width);
    }
    return this.part;
  }

  /** Notes a box and its text for `#fillBoxes`. */
  #addBox(node, y, left, width, isAncestor) {
    const { look } = this;
    const frame = this.frameOf(node);
    if (frame === -2) {
      return;
    }
    const isMatch = frame >= 0 && look.matches !== null && look.matches[frame] === 1;
    const isFaded = isAncestor || (look.matches !== null && !isMatch);
    const fill = isMatch ? look.palette.match : look.fillOf(this.graph, node, frame);
    const boxes = isFaded ? this.fadedBoxes : this.boxes;
    let ofFill = boxes.get(fill);
    if (ofFill === undefined) {
      ofFill = [];
      boxes.set(fill, ofFill);
    }
    // A narrow box fills its pixel, or antialiasing would make it vanish.
    ofFill.push(width < 1 ? Math.floor(left) : left, y, Math.max(1, width - (width >= 3 ? 1 : 0)));
    if (width >= TEXT_PIXELS) {
      const from = Math.max(0, left);
      this.texts.push([node, from, y, Math.min(width, this.width - from), isFaded, isMatch]);
    }
  }

  /** Draws the boxes by colour: a change of the colour costs more than a box. Texts follow. */
  #fillBoxes() {
    const { context } = this;
    for (const boxes of [this.boxes, this.fadedBoxes]) {
      context.globalAlpha = boxes === this.fadedBoxes ? FADED : 1;
      for (const [fill, list] of boxes) {
        context.fillStyle = fill;
        for (let at = 0; at < list.length; at += 3) {
          context.fillRect(list[at], list[at + 1], list[at + 2], ROW_PIXELS - 1);
        }
      }
      boxes.clear();
    }
    context.globalAlpha = 1;
    this.texts.forEach((text) => this.#drawText(...text));
    this.texts = [];
  }

  #drawText(node, left, y, width, isFaded, isMatch) {
    const { context, look } = this;
    const text = fitting(look.namesOf(this.graph, node), width - 2 * PADDING, (code) =>
      this.letterWidth(code),
    );
    if (text !== '') {
      context.globalAlpha = isFaded ? 0.75 : 1;
      context.fillStyle = isMatch && !look.palette.isDark ? '#1b0417' : look.palette.text;
      context.fillText(text, left + PADDING, y + ROW_PIXELS / 2);
      context.globalAlpha = 1;
    }
  }

  /** The frame of a node: -1 for the root without one, -2 for a gap. */
  frameOf(node) {
    if (node === 0) {
      return this.graph.rootFrame;
    }
    const frame = this.tree.frame[node];
    return frame < 0 ? -2 : frame;
  }

  #measureLetters() {
    if (this.letterWidths.length === 0) {
      this.letterWidths = new Float64Array(256);
      for (let code = 32; code < 256; code++) {
        this.letterWidths[code] = this.context.measureText(String.fromCharCode(code)).width;
      }
      this.ellipsisWidth = this.context.measureText('…').width;
    }
  }

  /** The width of a letter. Letters beyond Latin-1 are taken to be as wide as they are high. */
  letterWidth(code) {
    return code < 256 ? this.letterWidths[code] : code === 0x2026 ? this.ellipsisWidth : 12;
  }

  /** The node at a point of the canvas, or -1. */
  nodeAt(x, y) {
    const level = this.levelAt(y);
    const [begin, end] = this.range();
    if (!this.graph || level < 0 || level >= this.levels || x < 0 || x > this.width || end <= begin) {
      return -1;
    }
    const zoomLevel = this.tree.level[this.zoom];
    if (level <= zoomLevel) {
      let node = this.zoom;
      for (let at = zoomLevel; at > level; at--) {
        node = this.tree.parent[node];
      }
      return node;
    }
    const position = begin + ((end - begin) * x) / this.width;
    const node = nodeAtPosition(this.tree, this.graph.widths, level, position);
    const isHidden =
      node !== -1 &&
      (node >= this.tree.end[this.zoom] ||
        this.frameOf(node) === -2 ||
        this.graph.widths[this.tree.end[node]] - this.graph.widths[node] < this.narrowest);
    return isHidden ? -1 : node;
  }

  /** The node's box on the canvas, in pixels, or null if the box is not within the zoomed part. */
  boxOf(node) {
    const { tree, graph } = this;
    if (!graph || node < 0 || node >= tree.count) {
      return null;
    }
    const [begin, end] = this.range();
    const top = this.top(tree.level[node]);
    if (node <= this.zoom && tree.end[node] >= tree.end[this.zoom]) {
      return { left: 0, top, width: this.width, height: ROW_PIXELS };
    }
    if (node < this.zoom || node >= tree.end[this.zoom] || end <= begin) {
      return null;
    }
    const scale = this.width / (end - begin);
    const left = (graph.widths[node] - begin) * scale;
    return {
      left,
      top,
      width: (graph.widths[tree.end[node]] - graph.widths[node]) * scale,
      height: ROW_PIXELS,
    };
  }

  #place(frame, node) {
    const box = node >= 0 ? this.boxOf(node) : null;
    frame.hidden = box === null;
    if (box) {
      frame.style.left = `${box.left}px`;
      frame.style.top = `${box.top}px`;
      frame.style.width = `${Math.max(1, box.width - 1)}px`;
      frame.style.height = `${ROW_PIXELS - 1}px`;
    }
  }

  hover(node) {
    this.hovered = node;
    this.#place(this.hoverBox, node);
  }

  select(node) {
    this.selected = node;
    this.#place(this.marker, node);
  }

  /** Scrolls until the node's row is in sight. */
  reveal(node) {
    const box = this.boxOf(node);
    if (box && (box.top < 0 || box.top + ROW_PIXELS > this.height)) {
      this.element.scrollTop += box.top - this.height / 3;
    }
  }
}
