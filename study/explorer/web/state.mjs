/**
 * State: what the page shows of a network, and its form in a link.
 *
 * A link is a list of key=value behind #. Whatever in it does not fit the network is passed over.
 *
 * @typedef {object} State
 * @property {string} tab One of TABS.
 * @property {string} mode One of MODES.
 * @property {number[]} x The input of each wire.
 * @property {number[]} bits Its input in 0-1 mode.
 * @property {number | null} step Layers, or codelets, that have run; null: all.
 * @property {number} follow The wire on which the followed item comes in; -1: none.
 * @property {number[] | null} chosen The output wires that are wanted; null: all.
 * @property {string} paint How comparators are coloured, one of PAINTS.
 * @property {number} block The block of columns of P whose light cone is shown.
 * @property {string} sigmoid
 * @property {number} lambda
 * @property {number} steepness
 * @property {string} form One of FORMS.
 * @property {string} show What wires show in soft mode, one of SHOWN.
 * @property {string} of Whose gradient: y3 is output 3, p3.1 the entry of P in row 3 and column 1, or loss.
 * @property {boolean} mended Whether the comparator that mends the network works.
 * @property {string} format The format that is shown.
 * @property {string} source The generated source that is shown.
 */

import { FORMS } from "./soft.mjs";

const TABS = ["explore", "formats", "code", "bounds", "proof"];
const MODES = ["exact", "bits", "soft"];
const PAINTS = ["work", "codelets", "cone"];
const SHOWN = ["values", "gradient"];
export const LEAST_STEEPNESS = 0.01;
export const MOST_STEEPNESS = 10000;
export const MOST_LAMBDA = 0.99;

/**
 * Return the state with which the page of some facts begins.
 * @returns {State}
 */
export function startOf(facts) {
  const chosen = facts.is_selection ? facts.ranks.map(([wire]) => wire).sort((a, b) => a - b) : null;
  const isHalf = (value) => Number(value >= median(facts.start.values));
  return {
    tab: "explore",
    mode: facts.proof.failure ? "bits" : "exact",
    x: [...facts.start.values],
    bits: facts.proof.failure ? [...facts.proof.failure.vector] : facts.start.values.map(isHalf),
    step: null,
    follow: -1,
    chosen,
    paint: "work",
    block: 0,
    sigmoid: facts.start.sigmoid,
    lambda: facts.start.art_lambda,
    steepness: facts.start.steepness,
    form: facts.start.form,
    show: "values",
    of: `y${chosen ? chosen[0] : facts.n >> 1}`,
    mended: false,
    format: facts.formats[0].name,
    source: facts.sources[0]?.name ?? "",
  };
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

const oneOf = (words) => (text) => (words.includes(text) ? text : undefined);
const named = (list) => (text, facts) => facts[list].find(({ name }) => name === text)?.name;
const within = (least, most) => (text) =>
  text !== "" && Number(text) >= least && Number(text) <= most ? Number(text) : undefined;
const whole = (most) => (text, facts) =>
  /^\d{1,6}$/.test(text) && Number(text) <= most(facts) ? Number(text) : undefined;

/** How each key of a link is read; undefined: it does not fit. */
const READERS = {
  tab: oneOf(TABS),
  mode: oneOf(MODES),
  x: (text, { n }) => readNumbers(text, n).found,
  bits: (text, { n }) => readBits(text, n).found,
  step: whole(() => 10000),
  follow: whole(({ n }) => n - 1),
  ranks: (text, { ranks }) => {
    const known = ranks.map(([wire]) => wire);
    const wires = [...new Set(text.split(",").map(Number))].sort((a, b) => a - b);
    return text !== "" && wires.every((wire) => known.includes(wire)) ? wires : undefined;
  },
  paint: oneOf(PAINTS),
  block: whole(({ n, cut }) => Math.ceil(n / (cut?.columns ?? 1)) - 1),
  relaxation: (text, { sigmoids }) => oneOf(sigmoids)(text),
  lambda: within(0, MOST_LAMBDA),
  steepness: within(LEAST_STEEPNESS, MOST_STEEPNESS),
  form: oneOf(FORMS),
  show: oneOf(SHOWN),
  of: (text, { n }) => {
    const place = /^(?:loss|y(\d{1,3})|p(\d{1,3})\.(\d{1,3}))$/.exec(text);
    return place && place.slice(1).every((index) => Number(index ?? 0) < n) ? text : undefined;
  },
  mended: (text, { proof }) => (proof.failure?.mend && /^[01]$/.test(text) ? text === "1" : undefined),
  format: named("formats"),
  source: named("sources"),
};
const FIELDS = { ranks: "chosen", relaxation: "sigmoid" };

/** Return the state as the text of a link, without #: what differs from the start. */
export function linkOf(state, start) {
  const words = [];
  for (const key of Object.keys(READERS)) {
    const [text, first] = [state, start].map((each) => written(key, each[FIELDS[key] ?? key]));
    if (text !== first) words.push(`${key}=${text}`);
  }
  return words.join("&");
}

function written(key, value) {
  if (key === "bits") return value.join("");
  if (key === "mended") return String(Number(value));
  return encodeURIComponent(String(value)).replaceAll("%2C", ",");
}

/** Return the row and the column that a gradient is of; -1 where it has none. */
export function targetOf(of) {
  const [row, column] = of.slice(1).split(".").map(Number);
  return of === "loss" ? { row: -1, column: -1 } : { row, column: column ?? -1 };
}

/**
 * Return the start with the changes that a link makes.
 * @param {string} link With or without #.
 * @param {State} start
 * @param {object} facts
 * @returns {State}
 */
export function stateOf(link, start, facts) {
  const state = { ...start };
  for (const [key, text] of new URLSearchParams(link.replace(/^#/, "").slice(0, 20000))) {
    const value = Object.hasOwn(READERS, key) ? READERS[key](text, facts) : undefined;
    if (value !== undefined) state[FIELDS[key] ?? key] = value;
  }
  return state;
}

/** Return the number of a text, or undefined: none, or one that is not finite. The page's own minus is one. */
function numberOf(text) {
  const number = Number(text.replaceAll("−", "-"));
  return text.trim() !== "" && Number.isFinite(number) ? number : undefined;
}

// Readers of what a person types return `{ found }`, or `{ fault }`: the first word that is wrong, and how many
// values there are.

/** Read a number. */
export function readNumber(text) {
  const found = numberOf(text);
  if (found !== undefined) return { found };
  return { fault: text.trim() === "" ? "nothing is typed" : `${quoted(text.trim())} is no finite number` };
}

/** Read `n` numbers, such as "1 2, 3" or "[1, 2, 3]". */
export function readNumbers(text, n) {
  const list = /^\s*(?:\[([^[\]]*)\]|\(([^()]*)\))\s*$/.exec(text);
  const words = wordsOf(list ? (list[1] ?? list[2]) : text);
  const numbers = words.map(numberOf);
  const wrong = numbers.indexOf(undefined);
  const faults = [];
  if (wrong >= 0) faults.push(`${quoted(words[wrong])}, of wire ${wrong}, is no finite number`);
  if (words.length !== n) faults.push(`${counted(words.length, "value")} found, ${n} needed`);
  return faults.length ? { fault: faults.join("; ") } : { found: numbers };
}

/** Read `n` zeros and ones, with or without spaces and commas between them. */
export function readBits(text, n) {
  const words = wordsOf(text);
  const wrong = words.find((word) => !/^[01]+$/.test(word));
  const bits = words.join("");
  const faults = [];
  if (wrong !== undefined) faults.push(`${quoted(wrong)} is not made of zeros and ones`);
  if (bits.length !== n) faults.push(`${counted(bits.length, "digit")} found, ${n} needed`);
  return faults.length ? { fault: faults.join("; ") } : { found: [...bits].map(Number) };
}

/**
 * Read the output wires of some ranks, null for all: "all", "median", "top 3", "bottom 3", or ranks such as
 * "0, 5-7". A median of an even number of values has a `remark`.
 */
export function readRanks(text, facts) {
  const words = text.trim().toLowerCase();
  if (words === "" || words === "all") return { found: startOf(facts).chosen };
  const { n } = facts;
  const ranks = new Set();
  const add = (first, last) => {
    for (let rank = first; rank <= last; rank++) ranks.add(rank);
  };
  const extreme = /^(top|bottom)[- ]?(\d{1,9})$/.exec(words);
  if (words === "median") add((n - 1) >> 1, n >> 1);
  else if (extreme) {
    const count = Number(extreme[2]);
    if (count < 1 || count > n) return { fault: `${quoted(words)} is none of top 1 … ${n}, bottom 1 … ${n}` };
    if (extreme[1] === "top") add(n - count, n - 1);
    else add(0, count - 1);
  } else {
    for (const part of wordsOf(words)) {
      const range = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part);
      if (!range)
        return { fault: `${quoted(part)} is none of all, median, top 3, bottom 3, or ranks such as 0, 5-7` };
      const [first, last] = [Number(range[1]), Number(range[2] ?? range[1])];
      if (first > last) return { fault: `${quoted(part)} ends before it begins` };
      if (last >= n) return { fault: `${quoted(part)} is not within the ranks 0 … ${n - 1}` };
      add(first, last);
    }
  }
  const carriers = new Map(facts.ranks.map(([wire, rank]) => [rank, wire]));
  const missing = [...ranks].find((rank) => !carriers.has(rank));
  const remark = words === "median" && n % 2 === 0 ? `The median is the mean of ranks ${[...ranks].join(" and ")}.` : "";
  if (missing !== undefined) return { fault: `rank ${missing} is none of those that this network selects` };
  return ranks.size
    ? { found: [...ranks].map((rank) => carriers.get(rank)).sort((a, b) => a - b), remark }
    : { fault: "no rank found" };
}

const wordsOf = (text) => text.split(/[\s,;]+/).filter(Boolean);
const quoted = (word) => `“${word.length > 24 ? `${word.slice(0, 23)}…` : word}”`;

/** Return a number with its noun. */
export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
