/**
 * Networks: comparators by layers, runs on values, and what chosen outputs depend on.
 *
 * A wire is cut into segments where comparators touch it. Segment w < n is the input of wire w; a comparator
 * reads two segments and makes two new ones. So what a run knows of each place is an array over segments.
 *
 * @typedef {object} Comparator
 * @property {number} lo The wire that takes the minimum.
 * @property {number} hi The wire that takes the maximum.
 * @property {number} layer
 * @property {boolean} idle Whether it does nothing: a mend that is shown but not applied.
 * @property {boolean} mends Whether it is the comparator that mends a network.
 * @property {number} inLo Segment that it reads on wire lo; so on.
 * @property {number} inHi
 * @property {number} outLo
 * @property {number} outHi
 *
 * @typedef {object} Segment
 * @property {number} wire
 * @property {number} from The comparator that makes it; -1: an input.
 * @property {number} to The comparator that reads it; -1: an output.
 *
 * @typedef {object} Net
 * @property {number} n
 * @property {number} depth
 * @property {Comparator[]} comparators In running order.
 * @property {Segment[]} segments
 * @property {number[]} outputs The last segment of each wire.
 *
 * @typedef {object} Mend A change of one comparator, after which the network has its property.
 * @property {"insert" | "turn"} kind
 * @property {number} lo
 * @property {number} hi
 * @property {number} layer Of "turn": the comparator's; of "insert": the layer it stands in front of.
 */

/** What of a comparator is needed behind it. */
export const NEEDED = Object.freeze({ NONE: 0, LO: 1, HI: 2, BOTH: 3 });

/**
 * Return the network of some layers. An inserted mend is a layer of its own, shown whether it works or not.
 * @param {number} n
 * @param {number[][][]} layers Pairs [lo, hi].
 * @param {Mend | null} mend
 * @param {boolean} isMended Whether the mend works.
 * @returns {Net}
 */
export function makeNetwork(n, layers, mend = null, isMended = false) {
  const rows = layers.map((layer) => layer.map(([lo, hi]) => ({ lo, hi, idle: false, mends: false })));
  if (mend?.kind === "turn") {
    const turned = rows[mend.layer].find((pair) => pair.lo === mend.lo && pair.hi === mend.hi);
    if (turned) {
      turned.mends = true;
      if (isMended) [turned.lo, turned.hi] = [turned.hi, turned.lo];
    }
  } else if (mend) {
    rows.splice(mend.layer, 0, [{ lo: mend.lo, hi: mend.hi, idle: !isMended, mends: true }]);
  }
  const segments = Array.from({ length: n }, (_, wire) => ({ wire, from: -1, to: -1 }));
  const outputs = segments.map((segment) => segment.wire);
  const comparators = [];
  rows.forEach((row, layer) => {
    for (const pair of row) {
      const index = comparators.length;
      const [inLo, inHi] = [outputs[pair.lo], outputs[pair.hi]];
      segments[inLo].to = segments[inHi].to = index;
      const outLo = segments.push({ wire: pair.lo, from: index, to: -1 }) - 1;
      const outHi = segments.push({ wire: pair.hi, from: index, to: -1 }) - 1;
      comparators.push({ ...pair, layer, inLo, inHi, outLo, outHi });
      outputs[pair.lo] = outLo;
      outputs[pair.hi] = outHi;
    }
  });
  return { n, depth: rows.length, comparators, segments, outputs };
}

/**
 * Run the network exactly. Equal values keep their places.
 * @param {Net} net
 * @param {ArrayLike<number>} x
 * @returns {{values: Float64Array, items: Int32Array, exchanged: boolean[]}} The value and the item on each
 *   segment, an item being the wire that it came in on; and of each comparator whether it exchanged.
 */
export function runExactly(net, x) {
  const values = new Float64Array(net.segments.length);
  const items = new Int32Array(net.segments.length);
  for (let wire = 0; wire < net.n; wire++) [values[wire], items[wire]] = [x[wire], wire];
  const exchanged = net.comparators.map((c) => {
    const turns = !c.idle && values[c.inHi] < values[c.inLo];
    const [low, high] = turns ? [c.inHi, c.inLo] : [c.inLo, c.inHi];
    [values[c.outLo], items[c.outLo]] = [values[low], items[low]];
    [values[c.outHi], items[c.outHi]] = [values[high], items[high]];
    return turns;
  });
  return { values, items, exchanged };
}

/**
 * Return of each comparator what the chosen output wires need of it: a value of NEEDED. A comparator of which
 * one wire is needed is a half comparator; one of which none is needed is dead.
 * @param {Net} net
 * @param {Iterable<number> | null} wires The chosen outputs; null: all.
 * @returns {Uint8Array}
 */
export function neededOf(net, wires) {
  const needed = new Uint8Array(net.comparators.length);
  const live = new Uint8Array(net.segments.length);
  for (const wire of wires ?? net.outputs.keys()) live[net.outputs[wire]] = 1;
  for (let index = net.comparators.length - 1; index >= 0; index--) {
    const c = net.comparators[index];
    const [lo, hi] = [live[c.outLo], live[c.outHi]];
    needed[index] = lo * NEEDED.LO + hi * NEEDED.HI;
    if (c.idle) [live[c.inLo], live[c.inHi]] = [lo, hi];
    else live[c.inLo] = live[c.inHi] = lo | hi;
  }
  return needed;
}

/**
 * Return of each segment whether it depends on some inputs: their light cone.
 * @param {Net} net
 * @param {Iterable<number>} inputs
 * @returns {Uint8Array}
 */
export function coneOf(net, inputs) {
  const reached = new Uint8Array(net.segments.length);
  for (const wire of inputs) reached[wire] = 1;
  for (const c of net.comparators) {
    const [lo, hi] = [reached[c.inLo], reached[c.inHi]];
    [reached[c.outLo], reached[c.outHi]] = c.idle ? [lo, hi] : [lo | hi, lo | hi];
  }
  return reached;
}

/**
 * Spread the comparators of a layer over columns, so that none crosses another; first fit.
 * @param {Comparator[]} layer In the order of the lower wire.
 * @returns {Comparator[][]}
 */
export function columnsOf(layer) {
  const columns = [];
  const ends = [];
  for (const c of layer) {
    const [low, high] = [Math.min(c.lo, c.hi), Math.max(c.lo, c.hi)];
    let column = ends.findIndex((end) => end < low);
    if (column < 0) column = ends.length;
    (columns[column] ??= []).push(c);
    ends[column] = high;
  }
  return columns;
}
