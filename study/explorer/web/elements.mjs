/** Elements: HTML made by calls. Text is always text, never HTML. */
import { readNumber } from "./state.mjs";

/**
 * Return an element. Keys that begin with "on" are listeners, "class" and all others attributes; true and false
 * set and leave out an attribute.
 * @param {string} name
 * @param {Record<string, any>} attributes
 * @param {...(Node | string | null)} children
 */
export function h(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const ICONS = {
  first: "M5 4v12M16 4l-8 6 8 6z",
  back: "M13 4l-8 6 8 6z",
  play: "M6 3.5v13l10-6.5z",
  pause: "M6 4h3v12H6zM11.5 4h3v12h-3z",
  next: "M7 4l8 6-8 6z",
  end: "M15 4v12M4 4l8 6-8 6z",
  plus: "M10 4v12M4 10h12",
  minus: "M4 10h12",
  fit: "M4 8V4h4M16 8V4h-4M4 12v4h4M16 12v4h-4",
  link: "M8.5 11.5a3 3 0 0 0 4.2 0l2.8-2.8a3 3 0 0 0-4.2-4.2l-1 1M11.5 8.5a3 3 0 0 0-4.2 0l-2.8 2.8a3 3 0 0 0 4.2 4.2l1-1",
  theme: "M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14",
  keys: "M2.5 5.5h15v9h-15zM5.5 8.5h.01M8.5 8.5h.01M11.5 8.5h.01M14.5 8.5h.01M6.5 11.5h7",
};

export const capital = (words) => words.slice(0, 1).toUpperCase() + words.slice(1);

/** Return an icon of 20 × 20 units. */
export function icon(name) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  node.setAttribute("viewBox", "0 0 20 20");
  node.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  node.append(path);
  return node;
}

/** Return a button with an icon. */
export const iconButton = (name, label, onclick) =>
  h("button", { type: "button", class: "nsc-icon", "aria-label": label, title: label, onclick }, icon(name));

/** Return a button with words. */
export const wordButton = (words, onclick) =>
  h("button", { type: "button", class: "nsc-small", onclick }, words);

/** Return a word that the page uses and what it means; a page explains its words where they stand. */
export const makeTerm = (word, meaning) =>
  h("p", { class: "nsc-remark" }, h("dfn", {}, word), `: ${meaning}`);

/** Return terms that are shown when a person asks for them, by pointer or key. */
export const makeTerms = (terms) =>
  h(
    "details",
    { class: "nsc-terms" },
    h("summary", {}, "What these words mean"),
    ...terms.map(([word, meaning]) => makeTerm(word, meaning)),
  );

/**
 * Return buttons of which one is chosen.
 * @param {string} label
 * @param {[string, string][]} choices Values and words.
 * @param {(value: string) => void} choose
 */
export function makeChoice(label, choices, choose) {
  const buttons = choices.map(([value, words]) =>
    h("button", { type: "button", role: "radio", onclick: () => choose(value) }, words),
  );
  const group = h("div", { class: "nsc-choice", role: "radiogroup", "aria-label": label }, ...buttons);
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const at = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
    buttons[at].focus();
    choose(choices[at][0]);
    event.preventDefault();
    event.stopPropagation();
  });
  const show = (value) =>
    buttons.forEach((button, index) => {
      const isChosen = choices[index][0] === value;
      button.setAttribute("aria-checked", String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
    });
  return { node: group, show };
}

/**
 * Return a slider with a field for the same number.
 * @param {string} label
 * @param {{least: number, most: number, bounds?: [number, number], isLogarithmic: boolean,
 *   choose: (value: number) => void}} options From `least` to `most` it slides; the field takes what is
 *   within the `bounds`, by default the same, and says so where it takes another number than the typed one.
 */
export function makeSlider(label, { least, most, bounds = [least, most], isLogarithmic, choose }) {
  const toPlace = (value) =>
    isLogarithmic ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least);
  const toValue = (place) =>
    isLogarithmic ? least * (most / least) ** place : least + (most - least) * place;
  const rounded = (value) => Number(value.toPrecision(3));
  const range = h("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.001,
    "aria-label": label,
    oninput: () => choose(rounded(toValue(Number(range.value)))),
  });
  const field = h("input", {
    type: "text",
    inputmode: "decimal",
    class: "nsc-number",
    "aria-label": `${label}, number`,
    onchange: () => {
      const { found, fault } = readNumber(field.value);
      const used = Math.min(bounds[1], Math.max(bounds[0], found ?? shown));
      if (fault) note.textContent = `${fault}: ${used} stays`;
      else if (used !== found)
        note.textContent = `${label} is from ${bounds[0]} to ${bounds[1]}: ${used} is taken`;
      else note.textContent = "";
      noted = used;
      field.value = String(used); // also while it has the focus
      choose(used);
    },
  });
  const note = h("p", { class: "nsc-remark nsc-fault", role: "status" });
  let noted = null;
  let shown = least;
  const show = (value) => {
    shown = value;
    range.value = String(toPlace(value));
    range.setAttribute("aria-valuetext", String(value));
    if (document.activeElement !== field) field.value = String(value);
    if (value !== noted) note.textContent = "";
  };
  const name = h("span", { class: "nsc-label" }, label);
  const node = h("div", { class: "nsc-slider" }, name, field, range, note);
  return { node, show };
}
