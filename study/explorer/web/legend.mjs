/** The legend below the diagram, and the notice above it. */
import { neededOf } from "./network.mjs";
import { amount, kind, signed } from "./colours.mjs";
import { h, html, wordButton } from "./elements.mjs";
import { short } from "./heat_map.mjs";
import { BITS, EXCHANGED, PLAIN } from "./looks.mjs";

export const NINE = [...Array(9).keys()].map((place) => place / 8);
const MOST_LISTED = 12;

const swatch = (colour, words) =>
  html`<span class="nsc-swatch">${h("i", { style: `background:${colour}` })}${words}</span>`;
const item = (name, ...parts) => html`<span class="nsc-legend-item"><b>${name}</b>${parts}</span>`;

/** Return a scale of colours, from one end to the other. */
export const scale = (colours, from, to) =>
  html`<span class="nsc-scale">
    ${from}${h("i", { style: `background:linear-gradient(90deg,${colours.join(",")})` })}${to}
  </span>`;

/** Return the items of the legend: what the colours of wires and comparators stand for. */
export function legendOf(net, state, facts, runs, theme) {
  const items = [wiresItem(state, runs, theme), comparatorsItem(state, facts, theme)];
  if (net.comparators.some(({ lo, hi }) => lo > hi))
    items.push(
      html`<span class="nsc-legend-item"><dfn>arrowhead</dfn>the larger value leaves above, where it points</span>`,
    );
  if (state.chosen) {
    const counts = [0, 0, 0, 0];
    neededOf(net, state.chosen).forEach((needed) => counts[needed]++);
    items.push(
      item("chosen ranks need", `${counts[3]} whole, ${counts[1] + counts[2]} half, ${counts[0]} dead`),
    );
  }
  return items;
}

function wiresItem(state, runs, theme) {
  if (state.mode === "bits") return item("wires", swatch(BITS[theme][1], "1"), swatch(BITS[theme][0], "0"));
  const amounts = NINE.map((place) => amount(place, theme));
  if (state.mode !== "soft" || state.show === "values")
    return item("values", scale(amounts, short(runs.least), short(runs.most)));
  const most = short(Math.max(...runs.gradient.map(Math.abs)));
  const colours = NINE.map((place) => signed(2 * place - 1, theme));
  return item("gradient", scale(colours, `−${most}`, most));
}

function comparatorsItem(state, facts, theme) {
  const { cut } = facts;
  if (cut && state.paint === "codelets")
    return item("comparators", "coloured by codelet, which run one behind the other");
  if (cut && state.paint === "cone") {
    return item(
      "comparators",
      swatch(kind(0), "in the light cone"),
      cut.butterflies ? swatch(kind(1), "run with it") : "",
    );
  }
  const amounts = NINE.map((place) => amount(place, theme));
  if (state.mode === "soft") return item("comparators", scale(amounts, "swap", "keep"));
  return item("comparators", swatch(EXCHANGED[theme], "exchange"), swatch(PLAIN[theme], "leave"));
}

/**
 * Show in an element which wires are wrong, and the comparator that mends the network.
 * @param {HTMLElement} host
 * @param {{wrong: number[], failing: number}} view
 */
export function showNotice(host, { wrong, failing }, state, facts, update) {
  const mend = facts.proof.failure?.mend ?? null;
  const parts = [];
  if (wrong.length) {
    const wires =
      wrong.length > MOST_LISTED ? `${wrong.slice(0, MOST_LISTED).join(", ")}, …` : wrong.join(", ");
    // An inserted mend is drawn as a layer, and is none of the network's.
    const layer = failing - Number(mend?.kind === "insert" && mend.layer <= failing);
    const touched = failing < 0 ? "no comparator touches them" : `last touched in layer ${layer}`;
    parts.push(h("span", {}, `Wrong on ${wrong.length === 1 ? "wire" : "wires"} ${wires}, ${touched}.`));
  }
  if (mend) {
    if (state.mended) parts.push(h("span", {}, `Mended: ${mend.words}.`));
    const words = state.mended ? "Take the mend out" : `Mend it: ${mend.words}`;
    parts.push(wordButton(words, () => update({ mended: !state.mended, step: null })));
  }
  host.replaceChildren(...parts);
  host.hidden = parts.length === 0;
  host.classList.toggle("is-wrong", wrong.length > 0);
}
