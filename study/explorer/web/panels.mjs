/**
 * Panels: the settings beside the diagram. Each has a node, and a function that shows a state; what a person
 * changes goes to `update`.
 *
 * @typedef {import("./state.mjs").State} State
 * @typedef {import("./looks.mjs").Runs} Runs
 */
import {
  h,
  html,
  labelled,
  makeChoice,
  makeFault,
  makeSelect,
  makeSlider,
  makeTerm,
  wordButton,
} from "./elements.mjs";
import { LEAST_STEEPNESS, MOST_LAMBDA, MOST_STEEPNESS, readBits, readNumbers, readRanks, targetOf } from "./state.mjs";
import { heat } from "./colours.mjs";
import { short } from "./heat_map.mjs";
import { NINE, scale } from "./legend.mjs";

const upTo = (count) => [...Array(count).keys()];

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
  const wires = upTo(n).map((wire) => [wire, `of wire ${wire}`]);
  const follow = makeSelect("Item to follow", [[-1, "none"], ...wires], (wire) =>
    update({ follow: Number(wire) }),
  );
  const preset = (words, changes) => wordButton(words, () => update(changes()));
  const sorted = (compare) => [...state.x].sort(compare);
  const numbers = [
    preset("Shuffle", () => ({ x: shuffled(state.x) })),
    preset("Random", () => ({ x: state.x.map(() => Math.round(normal() * 100) / 100) })),
    preset("Ascending", () => ({ x: sorted((a, b) => a - b) })),
    preset("Descending", () => ({ x: sorted((a, b) => b - a) })),
  ];
  const bits = [
    preset("Random", () => ({ bits: state.bits.map(() => Math.round(Math.random())) })),
    preset("Zeros", () => ({ bits: state.bits.map(() => 0) })),
    preset("Flip all", () => ({ bits: state.bits.map((bit) => 1 - bit) })),
  ];
  if (failure) {
    numbers.unshift(preset("Failing input", () => ({ x: [...failure.values], step: null })));
    bits.unshift(preset("Counterexample", () => ({ bits: [...failure.vector], step: null })));
  }
  const node = html`<section class="nsc-card">
    <h2>Input</h2>
    ${[field, note, presets, bitsTerm, labelled("Follow the item", follow)]}
  </section>`;

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
    if (isOther) presets.replaceChildren(...(isBits ? bits : numbers));
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
  const terms = html`<div>
    ${makeTerm("half", "one of its two values is needed")}
    ${makeTerm("dead", "neither is")}
  </div>`;
  const field = h("input", { type: "text", spellcheck: "false", "aria-label": "Chosen ranks", oninput: read });
  const presets = ["All", "Median", "Top 1", ...(facts.n >= 8 ? ["Top 4"] : [])].map((words) =>
    wordButton(words, () => {
      field.value = words.toLowerCase();
      read();
    }),
  );
  const node = html`<section class="nsc-card">
    <h2>Chosen ranks</h2>
    ${[field, note]}
    <div class="nsc-row">${facts.is_selection ? null : presets}</div>
    ${terms}
  </section>`;

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

const BUTTERFLY = "comparators of two layers on four wires, which a kernel runs or skips together";

/** Make the panel of the colours of comparators. */
export function makePaints(facts, update) {
  const { n, cut } = facts;
  const terms = cut?.terms;
  // What is said below each way to colour comparators.
  const notes = cut && {
    codelets: [
      makeTerm("codelet", terms.codelet),
      html`<p class="nsc-remark">Steps go through the codelets in running order.</p>`,
    ],
    cone: [
      makeTerm("light cone", terms["light cone"]),
      makeTerm("P", terms.P),
      cut.butterflies ? makeTerm("butterfly", BUTTERFLY) : "",
    ],
  };
  const ways = [["work", "what they do"]];
  if (cut) ways.push(["codelets", "codelets"], ["cone", "a light cone of P"]);
  const paint = makeSelect("Colour of comparators", ways, (way) => update({ paint: way, step: null }));
  const columns = cut?.columns ?? 1;
  const blocks = upTo(Math.ceil(n / columns)).map((index) => {
    const [first, last] = [index * columns, Math.min(n, (index + 1) * columns) - 1];
    return [index, first === last ? `column ${first}` : `columns ${first} to ${last}`];
  });
  const block = makeSelect("Columns of P", blocks, (index) => update({ block: Number(index) }));
  const blockField = labelled("Of", block);
  const note = h("div");
  const node = html`<section class="nsc-card">
    <h2>Comparators</h2>
    ${[labelled("Coloured by", paint), blockField, note]}
  </section>`;

  /** @param {State} state */
  function show(state) {
    paint.value = cut ? state.paint : "work";
    block.value = String(state.block);
    blockField.hidden = paint.value !== "cone";
    note.replaceChildren(...(notes?.[paint.value] ?? []));
  }
  return { node, show };
}

const SOFT_TERMS = ({ default_steepness }) => [
  [
    "relaxed comparator",
    "it mixes its two values, the less the further apart they are, so that what comes out has a gradient",
  ],
  ["relaxation", "how the weight with which a comparator keeps its values in place follows from their difference"],
  [
    "steepness",
    `the larger, the nearer to an exact comparator; by default ${default_steepness}, twice the depth, which suits values of about 1`,
  ],
  [
    "ART λ",
    "the activation replacement trick: a difference d is taken as d / |d|^λ, so that close values part sooner",
  ],
  ["error-free", "exact values and a 0-1 P, with the gradients of the relaxed comparators"],
];

/** Make the panel of the relaxation, and the scale of the heat map. */
export function makeSoft(facts, update) {
  const { start } = facts;
  const sigmoids = facts.sigmoids.map((name) => [name, name]);
  const sigmoid = makeSelect("Relaxation", sigmoids, (name) => update({ sigmoid: name }));
  const steepness = makeSlider("Steepness", {
    least: LEAST_STEEPNESS,
    most: MOST_STEEPNESS,
    isLogarithmic: true,
    choose: (value) => update({ steepness: value }),
  });
  const lambda = makeSlider("ART λ", {
    least: 0,
    most: MOST_LAMBDA,
    isLogarithmic: false,
    choose: (value) => update({ lambda: value }),
  });
  const forms = [
    ["relaxed", "Relaxed"],
    ["error-free", "Error-free"],
  ];
  const form = makeChoice("Form", forms, (value) => update({ form: value }));
  const shown = [
    ["values", "Values"],
    ["gradient", "Gradient"],
  ];
  const wires = makeChoice("Wires show", shown, (value) => update({ show: value }));
  const numbers = upTo(facts.n).map((wire) => [`y${wire}`, `output ${wire}`]);
  const of = makeSelect("Gradient of", [...numbers, ["loss", "cross entropy"]], (value) => update({ of: value }));
  const entry = h("option");
  const loss = h("p", { class: "nsc-remark" });
  const defaults = wordButton("Defaults", () =>
    update({
      sigmoid: start.sigmoid,
      lambda: start.art_lambda,
      steepness: start.default_steepness,
      form: start.form,
    }),
  );
  const node = html`<section class="nsc-card">
    <div class="nsc-card-head"><h2>Soft comparators</h2>${defaults}</div>
    ${[labelled("Relaxation", sigmoid), steepness.node, lambda.node]}
    <div class="nsc-field"><span class="nsc-label">Form</span>${form.node}</div>
    <div class="nsc-field"><span class="nsc-label">Wires show</span>${wires.node}</div>
    ${[labelled("Gradient of", of), loss]}
    <details class="nsc-terms">
      <summary>What these words mean</summary>
      ${SOFT_TERMS(start).map(([word, meaning]) => makeTerm(word, meaning))}
    </details>
  </section>`;
  const most = h("span", {}, "1");
  const colours = NINE.map((place) => heat(Math.sqrt(place)));

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
  return { node, show, scale: scale(colours, "0", most) };
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
  ["Drag the diagram", "scroll it"],
];

/** Return a dialog that lists keys and what the mouse does. */
export function makeKeys() {
  const rows = KEYS_AND_MOUSE.flatMap(([key, words]) => [h("dt", {}, key), h("dd", {}, words)]);
  const dialog = html`<dialog class="nsc-keys" aria-label="Keyboard and mouse">
    <h2>Keyboard and mouse</h2>
    <dl>${rows}</dl>
    <form method="dialog"><button class="nsc-small">Close</button></form>
  </dialog>`;
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}
