/** Elements: HTML made by calls, and the controls of the page. Text is always text, never HTML. */
import { readNumber } from "./state.mjs";

/**
 * Return an element. Keys that begin with "on" are listeners, "class" and all others attributes; true and false
 * set and leave out an attribute.
 * @param {string} name
 * @param {Record<string, any>} attributes
 * @param {...(Node | string)} children
 */
export function h(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/**
 * Return the element that a template describes. A value stands between elements: a text, an element, a list of
 * these, or null for nothing.
 */
export function html(strings, ...values) {
  const template = document.createElement("template");
  template.innerHTML = strings.reduce((before, after, at) => `${before}<!--${at - 1}-->${after}`).trim();
  const walker = document.createTreeWalker(template.content, NodeFilter.SHOW_COMMENT);
  const places = [];
  while (walker.nextNode()) places.push(walker.currentNode);
  for (const place of places)
    place.replaceWith(...[values[place.data]].flat().filter((value) => value !== null));
  return template.content.firstElementChild;
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
  const node = html`<svg viewBox="0 0 20 20" aria-hidden="true"><path /></svg>`;
  node.firstElementChild.setAttribute("d", ICONS[name]);
  return node;
}

/** Return a button with an icon. */
export const iconButton = (name, label, onclick) =>
  h("button", { type: "button", class: "nsc-icon", "aria-label": label, title: label, onclick }, icon(name));

/** Return a button with words. */
export const wordButton = (words, onclick) =>
  h("button", { type: "button", class: "nsc-small", onclick }, words);

/** Return a word that the page uses and what it means; a page explains its words where they stand. */
export const makeTerm = (word, meaning) => html`<p class="nsc-remark"><dfn>${word}</dfn>: ${meaning}</p>`;

/** Return a place for what is wrong with what a person typed. */
export const makeFault = () => html`<p class="nsc-remark nsc-fault" role="status"></p>`;

/** Return a list of options to choose from, pairs of a value and words. */
export function makeSelect(label, options, choose) {
  const node = h(
    "select",
    { "aria-label": label, onchange: () => choose(node.value) },
    ...options.map(([value, words]) => h("option", { value }, words)),
  );
  return node;
}

/** Return a control behind its name. */
export const labelled = (words, control) =>
  html`<label class="nsc-field"><span class="nsc-label">${words}</span>${control}</label>`;

/**
 * Return radio buttons, drawn as words of which one is chosen.
 * @param {string} label
 * @param {[string, string][]} choices Values and words.
 * @param {(value: string) => void} choose
 */
export function makeChoice(label, choices, choose, className = "nsc-choice") {
  const name = `nsc-${Math.random().toString(36).slice(2)}`; // a page may show several explorers
  const buttons = choices.map(([value]) =>
    h("input", { type: "radio", name, value, onchange: () => choose(value) }),
  );
  const node = h(
    "div",
    { class: className, role: "radiogroup", "aria-label": label },
    ...choices.map(([, words], at) => html`<label>${buttons[at]}<span>${words}</span></label>`),
  );
  const show = (value) => {
    const chosen = buttons.find((button) => button.value === value);
    if (chosen.checked) return;
    chosen.checked = true;
    if (node.scrollWidth > node.clientWidth)
      chosen.parentElement.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  return { node, show };
}

/**
 * Return a slider with a field for the same number.
 * @param {string} label
 * @param {{least: number, most: number, isLogarithmic: boolean, choose: (value: number) => void}} options The
 *   field says so where it takes another number than the typed one.
 */
export function makeSlider(label, { least, most, isLogarithmic, choose }) {
  const toPlace = (value) =>
    isLogarithmic ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least);
  const toValue = (place) =>
    isLogarithmic ? least * (most / least) ** place : least + (most - least) * place;
  const range = h("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.001,
    "aria-label": label,
    oninput: () => choose(Number(toValue(Number(range.value)).toPrecision(3))),
  });
  const field = h("input", {
    type: "text",
    inputmode: "decimal",
    class: "nsc-number",
    "aria-label": `${label}, number`,
    onchange: () => {
      const { found, fault } = readNumber(field.value);
      const used = Math.min(most, Math.max(least, found ?? shown));
      if (fault) note.textContent = `${fault}: ${used} stays`;
      else if (used !== found) note.textContent = `${label} is from ${least} to ${most}: ${used} is taken`;
      else note.textContent = "";
      noted = used;
      field.value = String(used); // also while it has the focus
      choose(used);
    },
  });
  const note = makeFault();
  let noted = null;
  let shown = least;
  const show = (value) => {
    shown = value;
    range.value = String(toPlace(value));
    range.setAttribute("aria-valuetext", String(value));
    if (document.activeElement !== field) field.value = String(value);
    if (value !== noted) note.textContent = "";
  };
  const node = html`<div class="nsc-slider"><span class="nsc-label">${label}</span>${field}${range}${note}</div>`;
  return { node, show };
}

/**
 * Make the tip of an element, which must be positioned: words for what is pointed at, touched or has the focus.
 * @param {HTMLElement} host
 */
export function makeTip(host) {
  const node = h("div", { class: "nsc-tip", hidden: true });
  host.append(node);
  const hide = () => {
    node.hidden = true;
  };

  /** Show words below a place of the window, or above it where the host has more room. */
  function show(words, clientX, clientY) {
    node.textContent = words;
    node.hidden = false;
    const box = host.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    const [width, height] = [node.offsetWidth, node.offsetHeight];
    const isAbove = y + 16 + height > host.clientHeight && y - 10 - height >= 0;
    node.style.left = `${Math.max(4, Math.min(x + 14, host.clientWidth - width - 4))}px`;
    node.style.top = `${isAbove ? y - 10 - height : y + 16}px`;
  }
  return { show, hide };
}
