/**
 * Layout: where the comparators and wires of a diagram lie, in units that a zoom multiplies.
 */
import { NEEDED, columnsOf } from "./network.mjs";

export const clamp = (value, least, most) => Math.min(most, Math.max(least, value));

/**
 * @typedef {object} Layout
 * @property {number} row Distance of two wires.
 * @property {number} radius Of the dots at the ends of comparators.
 * @property {number} width
 * @property {number} height
 * @property {number[]} x Where each comparator stands.
 * @property {{left: number, right: number}[]} layers
 */

/**
 * Return where a network's parts lie: wire w at height (w + ½)·row, layers from left to right.
 * @returns {Layout}
 */
export function layoutOf(net) {
  const row = net.n <= 8 ? 36 : net.n <= 16 ? 30 : net.n <= 32 ? 22 : net.n <= 64 ? 16 : 12;
  const column = row * 0.55;
  const gap = row * 0.95;
  const x = new Array(net.comparators.length);
  const layers = [];
  const byLayer = Array.from({ length: net.depth }, () => []);
  net.comparators.forEach((c, index) => byLayer[c.layer].push({ ...c, index }));
  let left = 0;
  for (const layer of byLayer) {
    const ordered = layer.sort((a, b) => Math.min(a.lo, a.hi) - Math.min(b.lo, b.hi));
    const columns = columnsOf(ordered);
    columns.forEach((group, at) =>
      group.forEach(({ index }) => (x[index] = left + gap / 2 + column * (at + 0.5))),
    );
    const right = left + gap + column * columns.length;
    layers.push({ left, right });
    left = right;
  }
  const width = Math.max(left, row * 3);
  return { row, radius: Math.min(4.2, row * 0.15), width, height: net.n * row, x, layers };
}

/** Return the path of a segment. */
export function segmentPath(layout, segment) {
  const left = segment.from < 0 ? 0 : layout.x[segment.from];
  const right = segment.to < 0 ? layout.width : layout.x[segment.to];
  return `M${round(left)} ${round((segment.wire + 0.5) * layout.row)}H${round(right)}`;
}

/**
 * Return the path of a comparator: a line, a dot on each wire that is needed behind it, and for a reversed one
 * an arrowhead below its upper dot. A wire that is not needed gets a short bar.
 */
export function comparatorPath(layout, c, index, needed) {
  const x = round(layout.x[index]);
  const [lo, hi] = [(c.lo + 0.5) * layout.row, (c.hi + 0.5) * layout.row];
  const end = (y, isNeeded) => (isNeeded ? dot(x, y, layout.radius) : bar(x, y, layout.radius));
  const arrow = c.lo > c.hi ? arrowhead(x, hi + layout.radius, layout.radius * 1.15) : "";
  const isDead = needed === NEEDED.NONE;
  const ends = end(lo, isDead || needed & NEEDED.LO) + end(hi, isDead || needed & NEEDED.HI);
  return `M${x} ${round(lo)}V${round(hi)}${ends}${arrow}`;
}

const round = (number) => Math.round(number * 100) / 100;
const dot = (x, y, r) =>
  `M${round(x - r)} ${round(y)}a${round(r)} ${round(r)} 0 1 0 ${round(2 * r)} 0a${round(r)} ${round(r)} 0 1 0 ${round(-2 * r)} 0`;
const bar = (x, y, r) => `M${round(x - r)} ${round(y)}h${round(2 * r)}`;
const arrowhead = (x, y, r) =>
  `M${round(x - r)} ${round(y + 2 * r)}L${x} ${round(y)}L${round(x + r)} ${round(y + 2 * r)}z`;
