/**
 * Looks: from a state and the runs of a network to the colours, classes and words of its diagram.
 *
 * @typedef {import("./state.mjs").State} State
 * @typedef {import("./network.mjs").Net} Net
 * @typedef {import("./diagram.mjs").View} View
 */
import { NEEDED, coneOf, neededOf, runExactly } from "./network.mjs";
import { crossEntropyOf, gradientOf, permutationOf, ranksOf, runSoftly, sharesOf } from "./soft.mjs";
import { amount, inkOn, kind, signed } from "./colours.mjs";
import { short } from "./heat_map.mjs";
import { targetOf } from "./state.mjs";

/**
 * @typedef {object} Runs What the network makes of the state's input.
 * @property {ReturnType<typeof runExactly>} exact
 * @property {Float64Array} values The value on each segment.
 * @property {number} least
 * @property {number} most
 * @property {import("./soft.mjs").SoftRun} [soft]
 * @property {Float64Array} [P]
 * @property {Float64Array} [ranks]
 * @property {Float64Array} [gradient]
 * @property {Float64Array} [followed] The share of the followed input in each segment.
 * @property {number} [loss]
 */

/**
 * Run the network on the state's input.
 * @param {Net} net
 * @param {State} state
 * @returns {Runs}
 */
export function runsOf(net, state) {
  const input = state.mode === "bits" ? state.bits : state.x;
  const exact = runExactly(net, input);
  const [least, most] = [Math.min(...input), Math.max(...input)];
  const runs = { exact, values: exact.values, least, most };
  if (state.mode === "soft") {
    runs.soft = runSoftly(net, input, state);
    runs.values = runs.soft.values;
    runs.P = permutationOf(net, runs.soft);
    runs.ranks = ranksOf(runs.P, net.n);
    const seeds = seedsOf(net, state, runs);
    runs.gradient = gradientOf(net, runs.soft, seeds);
    if (state.follow >= 0) runs.followed = sharesOf(net, runs.soft, state.follow);
  }
  return runs;
}

/** Return the derivatives that stand for the number whose gradient is shown. */
function seedsOf(net, state, runs) {
  const { n } = net;
  if (state.of === "loss") {
    const { loss, seeds } = crossEntropyOf(runs.P, trueRanks(state.x), state.form);
    runs.loss = loss;
    return { P: seeds };
  }
  const { row, column } = targetOf(state.of);
  if (column < 0) return { values: Array.from({ length: n }, (_, wire) => Number(wire === row)) };
  const P = new Float64Array(n * n);
  P[row * n + column] = 1;
  return { P };
}

/** Return the rank of each value; equal values keep their order. */
export function trueRanks(x) {
  const ranks = new Array(x.length);
  [...x.keys()].sort((a, b) => x[a] - x[b] || a - b).forEach((wire, rank) => (ranks[wire] = rank));
  return ranks;
}

/**
 * Return the parts that run one behind the other, as lists of comparators: the layers, or the codelets.
 * @param {Net} net
 * @param {State} state
 * @param {object} facts
 */
export function unitsOf(net, state, facts) {
  if (state.paint === "codelets" && facts.cut) return facts.cut.codelets;
  const layers = Array.from({ length: net.depth }, () => []);
  net.comparators.forEach(({ layer }, index) => layers[layer].push(index));
  // A mend that does not work is no step of its own.
  return layers.filter((layer) => !layer.every((index) => net.comparators[index].idle));
}

/**
 * Return what the diagram shows.
 * @param {Net} net
 * @param {State} state
 * @param {object} facts
 * @param {Runs} runs
 * @param {{units: number[][], step: number, theme: string}} at How far the network has run.
 * @returns {View & {wrong: number[]}}
 */
export function viewOf(net, state, facts, runs, { units, step, theme }) {
  const hasRun = new Uint8Array(net.comparators.length);
  units.slice(0, step).forEach((unit) => unit.forEach((index) => (hasRun[index] = 1)));
  // Dead comparators are in no codelet, and a mend may be in no layer: they have run when the others have.
  if (step === units.length) hasRun.fill(1);
  const needed = neededOf(net, state.chosen);
  const shownEnds = currentSegments(net, hasRun);
  const ranks = new Map(facts.ranks);
  const wanted = new Set(state.chosen ?? facts.ranks.map(([wire]) => wire));
  const sorted = [...(state.mode === "bits" ? state.bits : state.x)].sort((a, b) => a - b);
  const isDone = step === units.length;
  const isWrong = (wire) => wanted.has(wire) && runs.values[net.outputs[wire]] !== sorted[ranks.get(wire)];
  const wrong = isDone && state.mode !== "soft" ? [...Array(net.n).keys()].filter(isWrong) : [];
  const colours = coloursOf(net, state, facts, runs, theme);
  return {
    isBits: state.mode === "bits",
    least: runs.least,
    most: runs.most,
    ...wireLooks(net, state, runs, hasRun, colours),
    ...comparatorLooks(net, state, hasRun, needed, colours),
    needed,
    inputs: inputLooks(state, runs, colours),
    outputs: outputLooks(net, state, runs, { shownEnds, wanted, wrong, ranks, colours, isDone }),
    isFollowing: state.follow >= 0,
    playhead: isDone || (state.paint === "codelets" && facts.cut) ? null : layerBehind(net, units[step - 1]),
    failing: isDone && wrong.length ? lastLayer(net, wrong) : -1,
    wrong,
  };
}

function currentSegments(net, hasRun) {
  return net.outputs.map((segment) => {
    let shown = segment;
    while (net.segments[shown].from >= 0 && !hasRun[net.segments[shown].from]) {
      const c = net.comparators[net.segments[shown].from];
      shown = c.outLo === shown ? c.inLo : c.inHi;
    }
    return shown;
  });
}

// Colours of comparators that leave their values and that exchange them, and of the bits 0 and 1.
export const PLAIN = { light: "rgb(60,70,82)", dark: "rgb(190,200,212)" };
export const EXCHANGED = { light: "rgb(36,87,197)", dark: "rgb(122,167,255)" };
export const BITS = {
  light: ["rgb(166,176,188)", "rgb(200,84,0)"],
  dark: ["rgb(92,104,118)", "rgb(255,158,66)"],
};

const layerBehind = (net, unit) => (unit ? net.comparators[unit[0]].layer : -1);

/** Return the last layer with a comparator on some wires; -1: there is none. */
function lastLayer(net, wires) {
  const touches = (c) => !c.idle && (wires.includes(c.lo) || wires.includes(c.hi));
  return net.comparators.findLast(touches)?.layer ?? -1;
}

/** Return functions from values, gradients and comparators to colours. */
function coloursOf(net, state, facts, runs, theme) {
  const span = runs.most - runs.least || 1;
  const value = (number) => amount((number - runs.least) / span, theme);
  const bit = (number) => BITS[theme][number > 0.5 ? 1 : 0];
  const ofValue = state.mode === "bits" ? bit : value;
  // Between inputs and outputs gradients may be larger than at either end, by far: their root is shown.
  const most = runs.gradient ? Math.max(...runs.gradient.map(Math.abs)) || 1 : 1;
  const gradient = (number) => signed(number / most, theme);
  return {
    ofValue,
    gradient,
    plain: PLAIN[theme],
    comparator: comparatorColours(net, state, facts, runs, theme),
  };
}

function comparatorColours(net, state, facts, runs, theme) {
  const plain = PLAIN[theme];
  const pale = theme === "dark" ? "rgb(72,82,94)" : "rgb(200,206,213)";
  if (state.paint === "codelets" && facts.cut) {
    const colours = new Array(net.comparators.length).fill(pale);
    facts.cut.codelets.forEach((codelet, number) =>
      codelet.forEach((index) => (colours[index] = kind(number))),
    );
    return (index) => colours[index];
  }
  if (state.paint === "cone" && facts.cut) {
    const { reached, isRun } = coneParts(net, facts.cut, state.block);
    return (index) => (reached(index) ? kind(0) : isRun(index) ? kind(1) : pale);
  }
  if (runs.soft)
    return (index) => (net.comparators[index].idle ? pale : amount(runs.soft.keep[index], theme));
  return (index) => (runs.exact.exchanged[index] ? EXCHANGED[theme] : plain);
}

/**
 * Return which comparators a block of columns of P reaches, and which ones a kernel runs for it: all comparators of
 * the butterflies that the block reaches.
 */
export function coneParts(net, cut, block) {
  const first = block * cut.columns;
  const inputs = [...Array(net.n).keys()].slice(first, first + cut.columns);
  const cone = coneOf(net, inputs);
  const reached = (index) => cone[net.comparators[index].outLo] === 1;
  if (!cut.butterflies) return { reached, isRun: reached };
  const run = new Uint8Array(net.comparators.length);
  cut.butterflies.forEach((butterfly, number) => {
    if ((cut.reached[number] >> block) & 1) butterfly.forEach((index) => (run[index] = 1));
  });
  return { reached: (index) => reached(index) && run[index] === 1, isRun: (index) => run[index] === 1 };
}

function wireLooks(net, state, runs, hasRun, colours) {
  const isShown = ({ from }) => from < 0 || hasRun[from];
  const hasGradients = state.mode === "soft" && state.show === "gradient";
  const wires = net.segments.map((segment, index) => {
    if (!isShown(segment)) return "";
    return hasGradients ? colours.gradient(runs.gradient[index]) : colours.ofValue(runs.values[index]);
  });
  const wireClasses = net.segments.map((segment, index) => {
    if (!isShown(segment)) return "later";
    if (state.follow < 0) return "";
    if (!runs.followed) return runs.exact.items[index] === state.follow ? "on" : "";
    // The wider the line, the larger the share of the followed input.
    const share = runs.followed[index];
    return share > 0.02 ? `on share-${Math.min(4, Math.floor(share * 5))}` : "";
  });
  return { wires, wireClasses };
}

function comparatorLooks(net, state, hasRun, needed, colours) {
  const comparatorClasses = net.comparators.map((c, index) => {
    const words = [];
    if (needed[index] === NEEDED.NONE) words.push("dead");
    else if (needed[index] !== NEEDED.BOTH) words.push("half");
    if (c.mends) words.push(c.idle || !state.mended ? "mend" : "mend works");
    if (!hasRun[index]) words.push("later");
    return words.join(" ");
  });
  // What comparators will do is not told before they run; to which codelet they belong is.
  const isTold = (index) => hasRun[index] || state.paint !== "work";
  const colourOf = (index) => (isTold(index) ? colours.comparator(index) : colours.plain);
  const comparators = net.comparators.map((c, index) =>
    needed[index] === NEEDED.NONE ? "" : colourOf(index),
  );
  return { comparators, comparatorClasses };
}

function inputLooks(state, runs, colours) {
  const input = state.mode === "bits" ? state.bits : state.x;
  return input.map((value, wire) => {
    const fill = colours.ofValue(value);
    const more = runs.soft
      ? `, soft rank ${short(runs.ranks[wire])}, gradient ${short(runs.gradient[wire])}`
      : "";
    const isBits = state.mode === "bits";
    return {
      text: short(value),
      value,
      fill,
      ink: inkOn(fill),
      strip: runs.soft ? colours.gradient(runs.gradient[wire]) : undefined,
      label: `Input of wire ${wire}${isBits ? `: ${value}` : ""}`,
      told: `${short(value)}${more}`,
      className: wire === state.follow ? "followed" : "",
    };
  });
}

function outputLooks(net, state, runs, { shownEnds, wanted, wrong, ranks, colours, isDone }) {
  return shownEnds.map((segment, wire) => {
    const value = runs.values[segment];
    const isWanted = wanted.has(wire);
    const fill = colours.ofValue(value);
    const verdict = wrong.includes(wire) ? ", wrong" : isDone && isWanted ? ", right" : "";
    const rank = ranks.has(wire) ? `, rank ${ranks.get(wire)}` : "";
    const classes = [];
    if (!isWanted) classes.push("unwanted");
    if (wrong.includes(wire)) classes.push("wrong");
    if (runs.soft && targetOf(state.of).row === wire) classes.push("target");
    if (!runs.soft && state.follow >= 0 && runs.exact.items[segment] === state.follow)
      classes.push("followed");
    return {
      text: short(value),
      value,
      fill,
      ink: inkOn(fill),
      label: `Output of wire ${wire}: ${short(value)}${rank}${state.mode === "soft" ? "" : verdict}`,
      className: classes.join(" "),
    };
  });
}

/** Return the layer of a comparator: a mend that is shown but does not work is in none. */
export function layerOf(net, { layer }) {
  return layer - Number(net.comparators.some((c) => c.idle && c.layer < layer));
}

/** Return what is said of a comparator that is pointed at, touched or has the focus. */
export function wordsOfComparator(net, state, facts, runs, index) {
  const needed = neededOf(net, state.chosen)[index];
  const isByCodelet = state.paint === "codelets" && facts.cut !== null;
  const c = net.comparators[index];
  const [a, b] = [runs.values[c.inLo], runs.values[c.inHi]];
  const [lo, hi] = [runs.values[c.outLo], runs.values[c.outHi]];
  const lines = [
    `comparator (${c.lo}, ${c.hi})${c.idle ? "" : `, layer ${layerOf(net, c)}`}`,
    `${short(a)}, ${short(b)} → ${short(lo)}, ${short(hi)}`,
  ];
  if (runs.soft) lines.push(`keeps ${short(runs.soft.keep[index])}, swaps ${short(runs.soft.swap[index])}`);
  if (c.mends) lines.push("the comparator that mends the network");
  if (needed === NEEDED.NONE) lines.push("dead: no chosen rank depends on it");
  else if (needed !== NEEDED.BOTH)
    lines.push(
      needed === NEEDED.LO ? "half: only the minimum is needed" : "half: only the maximum is needed",
    );
  const codelet = isByCodelet ? facts.cut.codelets.findIndex((part) => part.includes(index)) : -1;
  if (codelet >= 0) lines.push(`codelet ${codelet}`);
  return lines.join("\n");
}
