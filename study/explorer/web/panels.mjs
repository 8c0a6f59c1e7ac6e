/**
 * Panels: the settings beside the diagram. Each has a node, and a function that shows a state; what a person
 * changes goes to `update`.
 *
 * @typedef {import("./state.mjs").State} State
 * @typedef {import("./looks.mjs").Runs} Runs
 */
import { h, makeChoice, makeSlider, makeTerm, makeTerms, wordButton } from "./elements.mjs";
import { LEAST_STEEPNESS, MOST_LAMBDA, MOST_STEEPNESS, readBits, readNumbers, readRanks } from "./state.mjs";
import { heat } from "./colours.mjs";
import { short } from "./heat_map.mjs";
import { targetOf } from "./looks.mjs";

const upTo = (count) => [...Array(count).keys()];
const makeFault = () => h("p", { class: "nsc-remark nsc-fault", role: "status" });
const labelled = (words, node) =>
  h("label", { class: "nsc-field" }, h("span", { class: "nsc-label" }, words), node);

/** Make the panel of the input: values, or zeros and ones, and the item to follow. */
export function makeInputs(facts, update) {
  /** @type {State} */ let state;
  const { n } = facts;
  const failure = facts.proof.failure;
  const note = makeFault();
  const field = h("textarea", {
    rows: n > 24 ? 3 : 2,
    spellcheck: "false",
    "aria-label": "Input values, one for each wire",
    oninput: read,
  });
  const presets = h("div", { class: "nsc-row" });
  const bitsTerm = makeTerm(
    "0-1",
    "a network that sorts all inputs of zeros and ones sorts all inputs; click an input to flip it",
  );
  const follow = h(
    "select",
    { "aria-label": "Item to follow", onchange: () => update({ follow: Number(follow.value) }) },
    h("option", { value: -1 }, "none"),
    ...upTo(n).map((wire) => h("option", { value: wire }, `of wire ${wire}`)),
  );
  const sorted = (compare) => [...state.x].sort(compare);
  const choices = {
    numbers: [
      ...(failure ? [wordButton("Failing input", () => update({ x: [...failure.values], step: null }))] : []),
      wordButton("Shuffle", () => update({ x: shuffled(state.x) })),
      wordButton("Random", () => update({ x: state.x.map(() => Math.round(normal() * 100) / 100) })),
      wordButton("Ascending", () => update({ x: sorted((a, b) => a - b) })),
      wordButton("Descending", () => update({ x: sorted((a, b) => b - a) })),
    ],
    bits: [
      ...(failure
        ? [wordButton("Counterexample", () => update({ bits: [...failure.vector], step: null }))]
        : []),
      wordButton("Random", () => update({ bits: state.bits.map(() => Math.round(Math.random())) })),
      wordButton("Zeros", () => update({ bits: state.bits.map(() => 0) })),
      wordButton("Flip all", () => update({ bits: state.bits.map((bit) => 1 - bit) })),
    ],
  };
  const node = h(
    "section",
    { class: "nsc-card" },
    h("h2", {}, "Input"),
    field,
    note,
    presets,
    bitsTerm,
    labelled("Follow the item", follow),
  );

  function read() {
    const isBits = state.mode === "bits";
    const { found, fault } = (isBits ? readBits : readNumbers)(field.value, n);
    field.setAttribute("aria-invalid", String(!found));
    note.textContent = fault ?? "";
    if (found) update(isBits ? { bits: found } : { x: found });
  }

  /** @param {State} next */
  function show(next) {
    const isOther = next.mode !== state?.mode;
    state = next;
    const isBits = state.mode === "bits";
    bitsTerm.hidden = !isBits;
    if (document.activeElement !== field || isOther) {
      field.value = isBits ? state.bits.join(" ") : state.x.join(", ");
      note.textContent = "";
      field.setAttribute("aria-invalid", "false");
    }
    if (isOther) presets.replaceChildren(...choices[isBits ? "bits" : "numbers"]);
    follow.value = String(state.follow);
  }
  return { node, show };
}

function shuffled(values) {
  const list = [...values];
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [list[last], list[other]] = [list[other], list[last]];
  }
  return list;
}

/** Return a number of the standard normal distribution. */
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

/** Make the panel of the ranks that are wanted. */
export function makeRanks(facts, update) {
  const rankOf = new Map(facts.ranks);
  const note = makeFault();
  const terms = h(
    "div",
    {},
    makeTerm("half", "one of its two values is needed"),
    makeTerm("dead", "neither is"),
  );
  const field = h("input", {
    type: "text",
    spellcheck: "false",
    "aria-label": "Chosen ranks",
    oninput: read,
  });
  const names = ["All", "Median", "Top 1", ...(facts.n >= 8 ? ["Top 4"] : [])];
  const presets = names.map((words) =>
    wordButton(words, () => {
      field.value = words.toLowerCase();
      read();
    }),
  );
  const node = h(
    "section",
    { class: "nsc-card" },
    h("h2", {}, "Chosen ranks"),
    field,
    note,
    facts.is_selection ? null : h("div", { class: "nsc-row" }, ...presets),
    terms,
  );

  function read() {
    const { found, fault, remark } = readRanks(field.value, facts);
    field.setAttribute("aria-invalid", String(found === undefined));
    note.textContent = fault ?? remark ?? "";
    if (found !== undefined) update({ chosen: found });
  }

  /** @param {State} state */
  function show(state) {
    terms.hidden = state.chosen === null;
    if (document.activeElement === field) return;
    const told = readRanks(field.value, facts).found;
    if (field.value !== "" && String(told) === String(state.chosen)) return;
    const ranks = state.chosen?.map((wire) => rankOf.get(wire)).sort((a, b) => a - b);
    field.value = ranks?.join(", ") ?? "all";
    field.setAttribute("aria-invalid", "false");
    note.textContent = "";
  }
  return { node, show };
}

/** What is said below each way to colour comparators. */
const PAINT_NOTES = {
  work: () => [],
  codelets: ({ terms }) => [
    makeTerm("codelet", terms.codelet),
    h("p", { class: "nsc-remark" }, "Steps go through the codelets in running order."),
  ],
  cone: ({ terms, butterflies }) => [
    makeTerm("light cone", terms["light cone"]),
    makeTerm("P", terms.P),
    butterflies
      ? makeTerm(
          "butterfly",
          "comparators of two layers on four wires, which a kernel runs or skips together",
        )
      : "",
  ],
};

/** Make the panel of the colours of comparators. */
export function makePaints(facts, update) {
  const { n, cut } = facts;
  const paint = h(
    "select",
    { "aria-label": "Colour of comparators", onchange: () => update({ paint: paint.value, step: null }) },
    h("option", { value: "work" }, "what they do"),
    ...(cut
      ? [h("option", { value: "codelets" }, "codelets"), h("option", { value: "cone" }, "a light cone of P")]
      : []),
  );
  const columns = cut?.columns ?? 1;
  const block = h(
    "select",
    { "aria-label": "Columns of P", onchange: () => update({ block: Number(block.value) }) },
    ...upTo(Math.ceil(n / columns)).map((index) => {
      const [first, last] = [index * columns, Math.min(n, (index + 1) * columns) - 1];
      return h(
        "option",
        { value: index },
        first === last ? `column ${first}` : `columns ${first} to ${last}`,
      );
    }),
  );
  const blockField = labelled("Of", block);
  const note = h("div", {});
  let noted = "";
  const node = h(
    "section",
    { class: "nsc-card" },
    h("h2", {}, "Comparators"),
    labelled("Coloured by", paint),
    blockField,
    note,
  );

  /** @param {State} state */
  function show(state) {
    const shown = cut ? state.paint : "work";
    paint.value = shown;
    block.value = String(state.block);
    blockField.hidden = shown !== "cone";
    if (noted !== shown) note.replaceChildren(...PAINT_NOTES[shown](cut));
    noted = shown;
  }
  return { node, show };
}

/** Make the panel of the relaxation, and the scale of the heat map. */
export function makeSoft(facts, update) {
  const { start } = facts;
  const sigmoid = h(
    "select",
    { "aria-label": "Relaxation", onchange: () => update({ sigmoid: sigmoid.value }) },
    ...facts.sigmoids.map(({ name }) => h("option", { value: name }, name)),
  );
  const steepness = makeSlider("Steepness", {
    least: 0.1,
    most: 1000,
    bounds: [LEAST_STEEPNESS, MOST_STEEPNESS],
    isLogarithmic: true,
    choose: (value) => update({ steepness: value }),
  });
  const lambda = makeSlider("ART λ", {
    least: 0,
    most: MOST_LAMBDA,
    isLogarithmic: false,
    choose: (value) => update({ lambda: value }),
  });
  const form = makeChoice(
    "Form",
    [
      ["relaxed", "Relaxed"],
      ["error-free", "Error-free"],
    ],
    (value) => update({ form: value }),
  );
  const wires = makeChoice(
    "Wires show",
    [
      ["values", "Values"],
      ["gradient", "Gradient"],
    ],
    (value) => update({ show: value }),
  );
  const of = h(
    "select",
    { "aria-label": "Gradient of", onchange: () => update({ of: of.value }) },
    ...upTo(facts.n).map((wire) => h("option", { value: `y${wire}` }, `output ${wire}`)),
    h("option", { value: "loss" }, "cross entropy"),
  );
  const entry = h("option", {});
  const loss = h("p", { class: "nsc-remark" });
  const defaults = wordButton("Defaults", () =>
    update({
      sigmoid: start.sigmoid,
      lambda: start.art_lambda,
      steepness: start.default_steepness,
      form: start.form,
    }),
  );
  const node = h(
    "section",
    { class: "nsc-card" },
    h("div", { class: "nsc-card-head" }, h("h2", {}, "Soft comparators"), defaults),
    labelled("Relaxation", sigmoid),
    steepness.node,
    lambda.node,
    h("div", { class: "nsc-field" }, h("span", { class: "nsc-label" }, "Form"), form.node),
    h("div", { class: "nsc-field" }, h("span", { class: "nsc-label" }, "Wires show"), wires.node),
    labelled("Gradient of", of),
    loss,
    makeTerms([
      [
        "relaxed comparator",
        "it mixes its two values, the less the further apart they are, so that what comes out has a gradient",
      ],
      [
        "relaxation",
        "how the weight with which a comparator keeps its values in place follows from their difference",
      ],
      [
        "steepness",
        `the larger, the nearer to an exact comparator; by default ${start.default_steepness}, twice the depth, which suits values of about 1`,
      ],
      [
        "ART λ",
        "the activation replacement trick: a difference d is taken as d / |d|^λ, so that close values part sooner",
      ],
      ["error-free", "exact values and a 0-1 P, with the gradients of the relaxed comparators"],
    ]),
  );
  const most = h("span", {}, "1");
  const colours = upTo(9).map((place) => heat(Math.sqrt(place / 8)));
  const scale = h(
    "span",
    { class: "nsc-scale" },
    "0",
    h("i", { style: `background:linear-gradient(90deg,${colours.join(",")})` }),
    most,
  );

  /**
   * @param {State} state
   * @param {Runs} runs
   */
  function show(state, runs) {
    node.hidden = state.mode !== "soft";
    if (node.hidden) return;
    sigmoid.value = state.sigmoid;
    steepness.show(state.steepness);
    lambda.show(state.lambda);
    form.show(state.form);
    wires.show(state.show);
    const { row, column } = targetOf(state.of);
    if (column >= 0) {
      entry.value = state.of;
      entry.textContent = `P, row ${row}, column ${column}`;
      of.append(entry);
    } else entry.remove();
    of.value = state.of;
    loss.textContent =
      runs.loss === undefined ? "" : `Cross entropy of P and the true ranks: ${short(runs.loss)}`;
    most.textContent = short(Math.max(...runs.P));
  }
  return { node, show, scale };
}

const KEYS_AND_MOUSE = [
  ["← →", "step back, step"],
  ["Home End", "to the inputs, to the outputs"],
  ["Space", "play, pause"],
  ["1 2 3", "exact, 0-1, soft"],
  ["+ − 0", "larger, smaller, fit"],
  ["Esc", "follow no item"],
  ["Tab, ↑ ↓", "to the inputs and outputs, from wire to wire"],
  ["← → on an input", "change it; with Shift ten times as much"],
  ["Enter on an input", "type it; a double click too"],
  ["Arrows on a comparator", "to the next one; each shows its values"],
  ["Drag an input", "change it"],
  ["Point at or touch a comparator", "see its values"],
  ["Click an input or a wire", "follow its item"],
  ["Click an output", "in soft mode: show its gradient; else follow its item"],
  ["Shift and click an output", "choose or leave out its rank"],
  ["Drag, Ctrl and wheel", "pan, zoom"],
];

/** Return a dialog that lists keys and what the mouse does. */
export function makeKeys() {
  const list = h(
    "dl",
    {},
    ...KEYS_AND_MOUSE.flatMap(([key, words]) => [h("dt", {}, key), h("dd", {}, words)]),
  );
  const close = h("form", { method: "dialog" }, h("button", { class: "nsc-small" }, "Close"));
  const dialog = h(
    "dialog",
    { class: "nsc-keys", "aria-label": "Keyboard and mouse" },
    h("h2", {}, "Keyboard and mouse"),
    list,
    close,
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}
