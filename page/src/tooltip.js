// The box beside the pointer with the facts of a node.

import { nodeFacts, nodeName } from './describe.js';
import { el, placeAt } from './dom.js';

export class Tooltip {
  constructor() {
    this.element = el('div', { class: 'tooltip', role: 'tooltip', hidden: true });
  }

  show(model, graph, node, x, y) {
    if (this.model !== model || this.graph !== graph || this.node !== node || this.element.hidden) {
      Object.assign(this, { model, graph, node });
      const facts = nodeFacts(model, graph, node).flatMap(([label, text]) => [
        el('dt', { text: label }),
        el('dd', { text }),
      ]);
      this.element.replaceChildren(
        el('strong', { text: nodeName(model.profile, graph, node) }),
        el('dl', {}, ...facts),
      );
      this.element.hidden = false;
    }
    placeAt(this.element, x, y);
  }

  /** Shows plain lines. */
  showText(lines, x, y) {
    this.node = -1;
    this.element.replaceChildren(...lines.map((text) => el('div', { text })));
    this.element.hidden = false;
    placeAt(this.element, x, y);
  }

  hide() {
    this.element.hidden = true;
  }
}
