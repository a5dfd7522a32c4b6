// The facts of a node as texts, for tooltip and status line.

import { BASE, NEW, hasSeconds } from './diff.js';
import { formatChange, formatPoints, formatShare, formatValue, stepTime } from './format.js';
import { boxNames } from './names.js';
import { KIND_NAMES } from './profile.js';

/** The whole name of a node. */
export function nodeName(profile, graph, node) {
  const frame = node === 0 ? graph.rootFrame : graph.tree.frame[node];
  return frame === -1 ? 'all' : profile.name(frame);
}

/** The names that a node's box may have, longest first. */
export function nodeNames(profile, graph, node) {
  const frame = node === 0 ? graph.rootFrame : graph.tree.frame[node];
  return frame === -1 ? ['all'] : boxNames(profile.name(frame), profile.kinds[frame]);
}

/** The values of a node, one for each side. */
export function nodeTotals(graph, node) {
  return graph.sums.map((sums) => sums[graph.tree.end[node]] - sums[node]);
}

/** A value of the shown type, as the comparison shows values: raw, or per second. */
export function valueText(model, value, side) {
  const { header } = model.profile;
  if (model.profile.sides === 2 && model.state.diffMode === 'seconds' && hasSeconds(header.sideSeconds)) {
    return `${formatValue(value / header.sideSeconds[side], model.type.unit)}/s`;
  }
  return formatValue(value, model.type.unit);
}

/** `[label, text]` of each fact of a node. */
export function nodeFacts(model, graph, node) {
  const { profile } = model;
  const frame = node === 0 ? graph.rootFrame : graph.tree.frame[node];
  const facts = [];
  const detail = frame >= 0 ? profile.detail(frame) : '';
  if (frame >= 0) {
    facts.push([
      'Kind',
      (KIND_NAMES[profile.kinds[frame]] ?? 'unknown') + (detail === '' ? '' : ` · ${detail}`),
    ]);
  }
  const totals = nodeTotals(graph, node);
  if (profile.sides === 2) {
    return facts.concat(comparison(model, totals));
  }
  const parent = graph.tree.parent[node];
  const whole = graph.whole;
  const ofParent =
    parent > 0 || (parent === 0 && graph.rootFrame >= 0)
      ? ` · ${formatShare(totals[0], nodeTotals(graph, parent)[0])} of parent`
      : '';
  facts.push([
    'Total',
    `${valueText(model, totals[0], 0)} · ${formatShare(totals[0], whole)} of all${ofParent}`,
  ]);
  if (graph.role === 'main') {
    const self = graph.sums[0][node + 1] - graph.sums[0][node];
    facts.push(['Self', `${valueText(model, self, 0)} · ${formatShare(self, whole)} of all`]);
  }
  if (graph.role === 'order' && profile.times) {
    facts.push(['Time', orderTime(profile, graph, node)]);
  }
  return facts;
}

function comparison(model, totals) {
  const { header } = model.profile;
  const [baseName, newName] = header.sideNames ?? ['base', 'new'];
  const text = (side) =>
    `${valueText(model, totals[side], side)} · ${formatShare(totals[side], model.totals[side])}`;
  return [
    [baseName, text(BASE)],
    [newName, text(NEW)],
    ['Change', changeText(model, totals)],
  ];
}

/** The change between two values in the mode of the comparison: share, per second or raw. */
export function changeText(model, values) {
  const change = changeOf(model, values);
  if (model.state.diffMode === 'share') {
    return formatChange(change, formatPoints);
  }
  const perSecond = model.state.diffMode === 'seconds' && hasSeconds(model.profile.header.sideSeconds);
  return formatChange(change, (size) => formatValue(size, model.type.unit) + (perSecond ? '/s' : ''));
}

/** The part of a value by which equal values may differ once they are weighted. */
const ROUNDING = 1e-12;

/** The weighted difference of new and base. */
export function changeOf(model, values) {
  const [base, next] = [BASE, NEW].map((side) => values[side] * model.factors[side]);
  const change = next - base;
  return Math.abs(change) <= ROUNDING * Math.max(Math.abs(base), Math.abs(next)) ? 0 : change;
}

function orderTime({ times }, graph, node) {
  const [from, to] = [graph.widths[node], graph.widths[graph.tree.end[node]]];
  const [begin, end] = [from, to].map((position) => stepTime(times, graph.window[0] + position));
  return `${begin} – ${end} · ${formatValue((to - from) * times.stepMs, 'milliseconds')}`;
}
