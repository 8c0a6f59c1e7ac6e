/**
 * The diagram: a network in SVG, with its inputs on the left, its outputs on the right, zoom and pan.
 *
 * `show` takes a View, which says what every part looks like. Only what changed is written to the page.
 *
 * @typedef {import("./network.mjs").Net} Net
 *
 * @typedef {object} Chip What stands at the end of a wire.
 * @property {string} text
 * @property {string} fill
 * @property {string} ink
 * @property {string} label For screen readers.
 * @property {string} [told] What they say of an input's value.
 * @property {number} value
 * @property {string} [strip] A colour beside it.
 * @property {string} [className]
 *
 * @typedef {object} View
 * @property {boolean} isBits Whether inputs are 0 or 1.
 * @property {number} least The least input.
 * @property {number} most The largest input.
 * @property {string[]} wires The colour of each segment.
 * @property {string[]} wireClasses
 * @property {string[]} comparators The colour of each comparator.
 * @property {string[]} comparatorClasses
 * @property {Uint8Array} needed
 * @property {Chip[]} inputs
 * @property {Chip[]} outputs
 * @property {boolean} isFollowing
 * @property {number | null} playhead The last layer that has run, -1 before the first; null: no line is drawn.
 * @property {number} failing A layer to mark; -1: none.
 */
import { clamp, comparatorPath, layoutOf, segmentPath } from "./layout.mjs";
import { makeTip } from "./tip.mjs";
import { listen } from "./gestures.mjs";

const SVG = "http://www.w3.org/2000/svg";
const MOST_SCALE = 1.5;
const MOST_ZOOM = 8;
const PADDING = 10;
// On a phone wires keep this distance, so that values can be read and touched; the rest is a matter of panning.
const LEAST_ROW = 18;
const NARROW = 560;

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/**
 * Make a diagram in an element.
 * @param {HTMLElement} host
 * @param {object} on What happens: `typeInput` of a text, which returns what is wrong with it, `moveInput` of a
 *   dragged and `nudgeInput` of a stepped value, `clickInput`, `pick` of an output, `followAt` of a segment. What
 *   is asked: `valueOf` an input, the `unit` of its steps, and `describe`, a comparator and its values in words.
 */
export function makeDiagram(host, on) {
  const clip = `nsc-clip-${Math.random().toString(36).slice(2)}`;
  const clipRect = svg("rect");
  const bands = svg("g", { class: "nsc-bands" });
  const wires = svg("g", { class: "nsc-wires" });
  const comparators = svg("g", { class: "nsc-comparators", role: "group", "aria-label": "Comparators" });
  const playhead = svg("line", { class: "nsc-playhead" });
  const world = svg("g", {}, bands, wires, comparators, playhead);
  const inputs = svg("g", { class: "nsc-inputs", role: "group", "aria-label": "Inputs" });
  const outputs = svg("g", { class: "nsc-outputs", role: "group", "aria-label": "Outputs" });
  const stage = svg(
    "svg",
    { class: "nsc-stage", role: "group", "aria-label": "Diagram of the network" },
    svg("defs", {}, svg("clipPath", { id: clip }, clipRect)),
    svg("g", { "clip-path": `url(#${clip})` }, world),
    inputs,
    outputs,
  );
  host.append(stage);
  const tip = makeTip(host);

  /** @type {Net} */ let net;
  let layout;
  let paths;
  let chips;
  let last = {};
  let size = { width: 0, height: 0, side: 84 };
  let scale = 1;
  let offset = { x: 0, y: 0 };
  let isFitted = true;
  let current = 0;
  let near = -1;
  let currentComparator = 0;

  function setNetwork(next) {
    net = next;
    layout = layoutOf(net);
    last = {};
    // One text for all paths: a browser reads it faster than it makes as many nodes by calls.
    const path = (d) => `<path d="${d}"/>`;
    wires.innerHTML = net.segments.map((segment) => path(segmentPath(layout, segment))).join("");
    comparators.innerHTML = "<path/>".repeat(net.comparators.length);
    bands.innerHTML = layout.layers
      .map(
        ({ left, right }, at) =>
          `<rect class="${at % 2 ? "odd" : ""}" x="${left}" width="${right - left}" y="0" height="${layout.height}"/>`,
      )
      .join("");
    playhead.setAttribute("y2", layout.height);
    paths = {
      wires: [...wires.children],
      comparators: [...comparators.children],
      bands: [...bands.children],
    };
    chips = { inputs: makeChips(inputs, true), outputs: makeChips(outputs, false) };
    current = Math.min(current, net.n - 1);
    rove(current);
    near = -1;
    currentComparator = 0;
    fit();
  }

  function makeChips(group, isInput) {
    group.replaceChildren();
    return Array.from({ length: net.n }, (_, wire) => {
      const parts = {
        strip: svg("rect", { class: "nsc-strip", width: 6, rx: 1 }),
        name: svg("text", { class: "nsc-wire-name" }),
        box: svg("rect", { class: "nsc-box", rx: 4 }),
        text: svg("text", { class: "nsc-value" }),
      };
      parts.name.textContent = String(wire);
      const node = svg("g", { class: "nsc-chip", tabindex: -1 }, ...Object.values(parts));
      node.setAttribute("role", isInput ? "slider" : "button");
      node.dataset.wire = String(wire);
      group.append(node);
      return { node, ...parts };
    });
  }

  /** Let the tab key reach one input and one output; arrows move between wires. */
  function rove(wire) {
    current = wire;
    for (const list of [chips.inputs, chips.outputs]) {
      list.forEach(({ node }, index) => node.setAttribute("tabindex", index === wire ? 0 : -1));
    }
  }

  /** Let the tab key reach one comparator; arrows move between them. */
  function roveComparator(index) {
    paths.comparators[currentComparator]?.removeAttribute("tabindex");
    currentComparator = index;
    paths.comparators[index]?.setAttribute("tabindex", 0);
    nameComparator();
  }

  function nameComparator() {
    const node = paths.comparators[currentComparator];
    node?.setAttribute("role", "img");
    node?.setAttribute("aria-label", on.describe(currentComparator));
  }

  function fit() {
    isFitted = true;
    resize();
  }

  function resize() {
    if (!layout) return;
    const width = Math.max(240, host.clientWidth);
    const side = width < NARROW ? 76 : 100;
    const inner = width - 2 * side;
    const most = Math.max(300, Math.min(860, window.innerHeight * 0.8));
    const least = width < NARROW && net.n <= 32 ? LEAST_ROW / layout.row : 0;
    const wide = Math.max(least, Math.min(MOST_SCALE, inner / layout.width));
    const height = Math.round(clamp(layout.height * wide + 2 * PADDING, 96, most));
    size = { width, height, side, inner };
    if (isFitted) {
      scale = Math.max(least, Math.min(wide, (height - 2 * PADDING) / layout.height));
      offset = { x: 0, y: 0 };
    }
    stage.setAttribute("width", width);
    stage.setAttribute("height", height);
    stage.setAttribute("viewBox", `0 0 ${width} ${height}`); // on paper it is made to fit
    for (const [key, value] of Object.entries({ x: side, y: 0, width: inner, height }))
      clipRect.setAttribute(key, value);
    place();
  }

  /** Move everything to where the zoom and the pan put it. */
  function place() {
    const { width, height, side, inner } = size;
    const [wide, high] = [layout.width * scale, layout.height * scale];
    const rest = { x: inner - wide, y: height - high };
    offset.x = rest.x >= 0 ? rest.x / 2 : clamp(offset.x, rest.x, 0);
    offset.y = rest.y >= 2 * PADDING ? rest.y / 2 : clamp(offset.y, rest.y - PADDING, PADDING);
    // Where the network is narrower than the stage, wires still begin and end at their values.
    const left = side + offset.x;
    world.setAttribute("transform", `translate(${left} ${offset.y}) scale(${scale})`);
    const row = layout.row * scale;
    wires.setAttribute("stroke-width", clamp(row * 0.12, 0.9, 3) / scale);
    wires.style.setProperty("--nsc-followed", `${clamp(row * 0.24, 2.4, 5) / scale}px`);
    comparators.setAttribute("stroke-width", clamp(row * 0.07, 0.7, 2) / scale);
    playhead.setAttribute("stroke-width", 1.5 / scale);
    const font = clamp(row * 0.68, 0, 13);
    const box = Math.min(24, row * 0.86);
    stage.classList.toggle("is-dense", font < 6.5);
    const [inputX, outputX] = [Math.max(0, left - side), Math.min(width - side, left + wide)];
    for (const [list, x] of [
      [chips.inputs, inputX],
      [chips.outputs, outputX],
    ]) {
      list.forEach((chip, wire) => {
        const y = offset.y + (wire + 0.5) * row;
        const isOut = y < -row || y > height + row;
        chip.node.setAttribute("visibility", isOut ? "hidden" : "visible");
        if (isOut) return;
        chip.node.setAttribute("transform", `translate(${x} ${y})`);
        placeChip(chip, list === chips.inputs, side, font, box);
      });
    }
    stage.classList.toggle("is-wide", wide > inner + 1);
    stage.classList.toggle("is-high", high > height + 1);
  }

  function placeChip({ strip, name, box: rect, text }, isInput, side, font, box) {
    const room = side < 100 ? 27 : 34; // for the number of the wire
    const width = side - room - 5;
    const from = isInput ? room : 5;
    const set = (node, values) =>
      Object.entries(values).forEach(([key, value]) => node.setAttribute(key, value));
    set(strip, { x: isInput ? from - 9 : from + width + 3, y: -box / 2, height: box });
    set(name, {
      x: isInput ? from - 12 : from + width + 8,
      "font-size": font * 0.85,
      "text-anchor": isInput ? "end" : "start",
    });
    set(rect, { x: from, y: -box / 2, width, height: box });
    set(text, { x: from + width / 2, "font-size": Math.min(font, width / 3.5) });
  }

  /** Return the box of an input in the host, to type in its place. */
  function boxOf(wire) {
    const chip = chips.inputs[wire].box.getBoundingClientRect();
    const origin = host.getBoundingClientRect();
    return {
      left: chip.left - origin.left,
      top: chip.top - origin.top,
      width: chip.width,
      height: chip.height,
    };
  }

  /** @param {View} view */
  function show(view) {
    write("wires", view.wires, (path, colour) => path.setAttribute("stroke", colour));
    write("wireClasses", view.wireClasses, (path, name) => path.setAttribute("class", name), paths.wires);
    write("comparators", view.comparators, (path, colour) => path.setAttribute("color", colour));
    write(
      "comparatorClasses",
      view.comparatorClasses,
      (path, name) => path.setAttribute("class", name),
      paths.comparators,
    );
    write(
      "needed",
      view.needed,
      (path, needed, index) => {
        path.setAttribute("d", comparatorPath(layout, net.comparators[index], index, needed));
      },
      paths.comparators,
    );
    roveComparator(clamp(currentComparator, 0, Math.max(0, paths.comparators.length - 1)));
    wires.classList.toggle("is-following", view.isFollowing);
    const edge = view.playhead === null ? null : view.playhead < 0 ? 0 : layout.layers[view.playhead].right;
    playhead.style.display = edge === null ? "none" : "";
    for (const key of ["x1", "x2"]) playhead.setAttribute(key, edge ?? 0);
    paths.bands.forEach((band, layer) => band.classList.toggle("failing", layer === view.failing));
    view.outputs.forEach((chip, wire) => showChip(chips.outputs[wire], chip));
    view.inputs.forEach((chip, wire) => {
      showChip(chips.inputs[wire], chip);
      tellInput(chips.inputs[wire].node, chip, view);
    });
  }

  /** Change the nodes of a list whose looks differ from the last time. */
  function write(key, looks, change, nodes = paths[key]) {
    const before = last[key];
    for (let index = 0; index < looks.length; index++) {
      if (!before || before[index] !== looks[index]) change(nodes[index], looks[index], index);
    }
    last[key] = looks;
  }

  function showChip({ node, strip, box, text }, chip) {
    box.setAttribute("fill", chip.fill);
    text.setAttribute("fill", chip.ink);
    if (text.textContent !== chip.text) text.textContent = chip.text;
    strip.setAttribute("fill", chip.strip ?? "none");
    node.setAttribute("class", `nsc-chip ${chip.className ?? ""}`);
    node.setAttribute("aria-label", chip.label);
  }

  /** Tell screen readers a bit as a switch, and a value as a slider, with bounds: else they take 0 and 100. */
  function tellInput(node, { value, told }, { isBits, least, most }) {
    node.setAttribute("role", isBits ? "switch" : "slider");
    const slider = { valuenow: value, valuemin: least, valuemax: most, valuetext: told };
    for (const [key, word] of Object.entries({ ...slider, checked: value === 1 })) {
      if ((key === "checked") === isBits) node.setAttribute(`aria-${key}`, String(word));
      else node.removeAttribute(`aria-${key}`);
    }
  }

  function zoomAt(factor, x = size.side + size.inner / 2, y = size.height / 2) {
    const least = Math.min(1, size.inner / layout.width, (size.height - 2 * PADDING) / layout.height) * 0.9;
    const next = clamp(scale * factor, least, MOST_ZOOM);
    const [worldX, worldY] = [(x - size.side - offset.x) / scale, (y - offset.y) / scale];
    scale = next;
    offset = { x: x - size.side - worldX * scale, y: y - worldY * scale };
    isFitted = false;
    place();
  }

  function panBy(x, y) {
    offset = { x: offset.x + x, y: offset.y + y };
    isFitted = false;
    place();
  }

  /** Return the place of an event in the network's units. */
  function placeOf(event) {
    const box = stage.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return { x, y, worldX: (x - size.side - offset.x) / scale, worldY: (y - offset.y) / scale };
  }

  /** Return the comparator within some pixels of a place, or -1. */
  function comparatorAt({ x, worldX, worldY }, pixels) {
    if (x <= size.side || x >= size.width - size.side) return -1;
    let [found, least] = [-1, pixels / scale];
    net.comparators.forEach((c, index) => {
      const distance = Math.abs(layout.x[index] - worldX);
      const [top, bottom] = [Math.min(c.lo, c.hi), Math.max(c.lo, c.hi)].map(
        (wire) => (wire + 0.5) * layout.row,
      );
      if (distance < least && worldY > top - layout.row * 0.3 && worldY < bottom + layout.row * 0.3) {
        [found, least] = [index, distance];
      }
    });
    return found;
  }

  /** Return the segment at a place, or -1. */
  function segmentAt({ worldX, worldY }) {
    const wire = Math.floor(worldY / layout.row);
    if (wire < 0 || wire >= net.n) return -1;
    let segment = wire;
    while (net.segments[segment].to >= 0 && layout.x[net.segments[segment].to] < worldX) {
      const c = net.comparators[net.segments[segment].to];
      segment = c.lo === wire ? c.outLo : c.outHi;
    }
    return segment;
  }

  /** Return the comparator that stands next to another one: in its layer, or nearest in height in the next. */
  function comparatorBeside(index, [across, down]) {
    const middle = ({ lo, hi }) => (lo + hi) / 2;
    const from = net.comparators[index];
    const beside = net.comparators
      .map((c, at) => at)
      .filter((at) => {
        const c = net.comparators[at];
        if (across) return c.layer === from.layer + across;
        return c.layer === from.layer && (middle(c) - middle(from) || at - index) * down > 0;
      });
    const far = (at) => Math.abs(middle(net.comparators[at]) - middle(from));
    return beside.reduce((best, at) => (best < 0 || far(at) < far(best) ? at : best), -1);
  }

  /** Give the focus to a comparator. */
  function focusComparator(index) {
    roveComparator(index);
    const x = size.side + offset.x + layout.x[index] * scale;
    if (x < size.side || x > size.width - size.side) panBy(size.width / 2 - x, 0);
    paths.comparators[index].focus();
  }

  /** Show the values of a comparator beside it, or beside a place; -1: of none. */
  function tell(index, at) {
    paths.comparators[near]?.classList.remove("is-near");
    paths.comparators[index]?.classList.add("is-near");
    near = index;
    if (index < 0) return tip.hide();
    const { lo, hi } = net.comparators[index];
    const [x, y] = [size.side + layout.x[index] * scale, ((lo + hi + 1) / 2) * layout.row * scale];
    tip.show(on.describe(index), at?.x ?? x + offset.x, at?.y ?? y + offset.y);
  }

  listen({
    stage,
    host,
    tip,
    on,
    placeOf,
    segmentAt,
    comparatorAt,
    comparatorBeside,
    focusComparator,
    currentComparator: () => currentComparator,
    tell,
    zoomAt,
    panBy,
    rove,
    boxOf,
    chipsOf: () => chips,
  });
  new ResizeObserver(() => host.clientWidth !== size.width && resize()).observe(host);
  return { setNetwork, show, fit, zoomAt };
}
