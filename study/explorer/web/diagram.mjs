/**
 * The diagram: a network in SVG that scrolls, its inputs on the left and its outputs on the right.
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
import { NEEDED, columnsOf } from "./network.mjs";
import { makeTip } from "./elements.mjs";

const SVG = "http://www.w3.org/2000/svg";
const MOST_SCALE = 1.5;
const MOST_ZOOM = 8;
const PADDING = 10;
// On a phone wires keep this distance, so that values can be read and touched; the rest is a matter of scrolling.
const LEAST_ROW = 18;
const NARROW = 560;
const PIXELS_A_STEP = 4;
// How far a comparator may lie from what points at it: a finger is wider than a mouse.
const NEAR = { mouse: 7, pen: 7, touch: 10 };

const clamp = (value, least, most) => Math.min(most, Math.max(least, value));

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  set(node, attributes);
  node.append(...children);
  return node;
}

function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
}

/**
 * Make a diagram in an element.
 * @param {HTMLElement} host
 * @param {object} on What happens: `typeInput` of a text, which returns what is wrong with it, `moveInput` of a
 *   dragged and `nudgeInput` of a stepped value, `clickInput`, `pick` of an output, `followAt` of a segment. What
 *   is asked: `valueOf` an input, the `unit` of its steps, and `describe`, a comparator and its values in words.
 */
export function makeDiagram(host, on) {
  const bands = svg("g", { class: "nsc-bands" });
  const wires = svg("g", { class: "nsc-wires" });
  const comparators = svg("g", { class: "nsc-comparators", role: "group", "aria-label": "Comparators" });
  const playhead = svg("line", { class: "nsc-playhead" });
  const world = svg("svg", { class: "nsc-world" }, bands, wires, comparators, playhead);
  const inputs = svg("svg", { class: "nsc-inputs", role: "group", "aria-label": "Inputs" });
  const outputs = svg("svg", { class: "nsc-outputs", role: "group", "aria-label": "Outputs" });
  const stage = document.createElement("div");
  stage.className = "nsc-stage";
  set(stage, { role: "group", "aria-label": "Diagram of the network" });
  stage.append(inputs, world, outputs);
  host.append(stage);
  const tip = makeTip(host);

  /** @type {Net} */ let net;
  let layout;
  let paths;
  let chips;
  let last = {};
  let width = 0;
  let scale = 1;
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
    const node = paths.comparators[index];
    if (node) set(node, { tabindex: 0, role: "img", "aria-label": on.describe(index) });
  }

  function fit() {
    isFitted = true;
    resize();
  }

  function resize() {
    if (!layout) return;
    width = Math.max(240, host.clientWidth);
    const least = width < NARROW && net.n <= 32 ? LEAST_ROW / layout.row : 0;
    const wide = Math.max(least, Math.min(MOST_SCALE, (width - 2 * side()) / layout.width));
    const most = clamp(window.innerHeight * 0.8, 300, 860);
    if (isFitted) scale = Math.max(least, Math.min(wide, (most - 2 * PADDING) / layout.height));
    stage.style.maxHeight = `${Math.round(most)}px`;
    place();
  }

  /** Return how wide the inputs are, and the outputs. */
  const side = () => (width < NARROW ? 76 : 100);

  /** Give everything the size that the zoom asks for. */
  function place() {
    const row = layout.row * scale;
    const height = Math.max(96, layout.height * scale + 2 * PADDING);
    const top = (height - layout.height * scale) / 2;
    for (const [node, wide] of [
      [inputs, side()],
      [world, Math.floor(layout.width * scale)],
      [outputs, side()],
    ])
      set(node, { width: wide, height });
    for (const node of world.children) node.setAttribute("transform", `translate(0 ${top}) scale(${scale})`);
    wires.setAttribute("stroke-width", clamp(row * 0.12, 0.9, 3) / scale);
    wires.style.setProperty("--nsc-followed", `${clamp(row * 0.24, 2.4, 5) / scale}px`);
    comparators.setAttribute("stroke-width", clamp(row * 0.07, 0.7, 2) / scale);
    playhead.setAttribute("stroke-width", 1.5 / scale);
    const font = clamp(row * 0.68, 0, 13);
    const box = Math.min(24, row * 0.86);
    stage.classList.toggle("is-dense", font < 6.5);
    for (const list of [chips.inputs, chips.outputs]) {
      list.forEach((chip, wire) => {
        chip.node.setAttribute("transform", `translate(0 ${top + (wire + 0.5) * row})`);
        placeChip(chip, list === chips.inputs, font, box);
      });
    }
  }

  function placeChip({ strip, name, box: rect, text }, isInput, font, box) {
    const room = side() < 100 ? 27 : 34; // for the number of the wire
    const wide = side() - room - 5;
    const from = isInput ? room : 5;
    set(strip, { x: isInput ? from - 9 : from + wide + 3, y: -box / 2, height: box });
    set(name, {
      x: isInput ? from - 12 : from + wide + 8,
      "font-size": font * 0.85,
      "text-anchor": isInput ? "end" : "start",
    });
    set(rect, { x: from, y: -box / 2, width: wide, height: box });
    set(text, { x: from + wide / 2, "font-size": Math.min(font, wide / 3.5) });
  }

  /** @param {View} view */
  function show(view) {
    write("wires", view.wires, "stroke", paths.wires);
    write("wireClasses", view.wireClasses, "class", paths.wires);
    write("comparators", view.comparators, "color", paths.comparators);
    const pathOf = (needed, index) => comparatorPath(layout, net.comparators[index], index, needed);
    write("comparatorClasses", view.comparatorClasses, "class", paths.comparators);
    write("needed", [...view.needed].map(pathOf), "d", paths.comparators);
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

  /** Set an attribute of the nodes of a list where it differs from the last time. */
  function write(key, looks, attribute, nodes) {
    const before = last[key];
    looks.forEach((look, at) => before?.[at] === look || nodes[at].setAttribute(attribute, look));
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

  /** Zoom about the middle of the stage. */
  function zoom(factor) {
    const [x, y] = [stage.clientWidth / 2, stage.clientHeight / 2];
    const wide = (width - 2 * side()) / layout.width;
    const least = Math.min(1, wide, (stage.clientHeight - 2 * PADDING) / layout.height) * 0.9;
    const before = scale;
    scale = clamp(scale * factor, least, MOST_ZOOM);
    isFitted = false;
    const [left, top] = [stage.scrollLeft + x - side(), stage.scrollTop + y];
    place();
    stage.scrollTo((left * scale) / before - x + side(), (top * scale) / before - y);
  }

  /** Return the place of an event in the network's units. */
  function placeOf({ clientX, clientY }) {
    const box = bands.getScreenCTM().inverse();
    return new DOMPoint(clientX, clientY).matrixTransform(box);
  }

  /** Return the comparator within some pixels of a place, or -1. */
  function comparatorAt({ x, y }, pixels) {
    let [found, least] = [-1, pixels / scale];
    net.comparators.forEach(({ lo, hi }, index) => {
      const distance = Math.abs(layout.x[index] - x);
      const [top, bottom] = [Math.min(lo, hi) + 0.2, Math.max(lo, hi) + 0.8];
      if (distance < least && y > top * layout.row && y < bottom * layout.row) [found, least] = [index, distance];
    });
    return found;
  }

  /** Return the segment at a place, or -1. */
  function segmentAt({ x, y }) {
    const wire = Math.floor(y / layout.row);
    if (wire < 0 || wire >= net.n) return -1;
    let segment = wire;
    while (net.segments[segment].to >= 0 && layout.x[net.segments[segment].to] < x) {
      const c = net.comparators[net.segments[segment].to];
      segment = c.lo === wire ? c.outLo : c.outHi;
    }
    return segment;
  }

  /** Show the values of a comparator where an event points, or beside it; -1: of none. */
  function tell(index, event) {
    const node = paths.comparators[index];
    paths.comparators[near]?.classList.remove("is-near");
    near = index;
    if (!node) return tip.hide();
    node.classList.add("is-near");
    const box = node.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    tip.show(on.describe(index), event?.clientX ?? x, event?.clientY ?? y);
  }

  // The pointer.

  function pointAt(event) {
    const isInside = world.contains(event.target);
    const found = isInside ? comparatorAt(placeOf(event), NEAR[event.pointerType] ?? NEAR.mouse) : -1;
    tell(found, event);
    return found;
  }

  /** Return the wire of an input, or of an output, to which an event goes; -1: none. */
  const wireOf = (event, group) =>
    group.contains(event.target) ? Number(event.target.closest(".nsc-chip")?.dataset.wire ?? -1) : -1;
  let drag = null;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    tell(-1);
    const wire = wireOf(event, inputs);
    drag = { x: event.clientX, y: event.clientY, wire, hasMoved: false };
    drag.output = wireOf(event, outputs);
    drag.scroll = [stage.scrollLeft, stage.scrollTop];
    if (wire >= 0) Object.assign(drag, { value: on.valueOf(wire), unit: on.unit() });
  });
  stage.addEventListener("pointermove", (event) => {
    if (!drag) return pointAt(event);
    const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.hasMoved && Math.hypot(x, y) <= 4) return;
    // Not before it moves: a captured pointer would take clicks away from the inputs.
    if (!drag.hasMoved) stage.setPointerCapture(event.pointerId);
    drag.hasMoved = true;
    tip.hide();
    if (drag.wire >= 0)
      on.moveInput(drag.wire, drag.value + Math.round(x / PIXELS_A_STEP) * drag.unit, drag.unit);
    else stage.scrollTo(drag.scroll[0] - x, drag.scroll[1] - y);
  });
  stage.addEventListener("pointerup", (event) => {
    if (drag && !drag.hasMoved) {
      if (drag.wire >= 0) on.clickInput(drag.wire);
      else if (drag.output >= 0) on.pick(drag.output);
      // Nothing hovers over a touch screen: there a touch tells what a mouse does that points.
      else if (event.pointerType !== "touch" || pointAt(event) < 0) {
        const segment = world.contains(event.target) ? segmentAt(placeOf(event)) : -1;
        if (segment >= 0) on.followAt(segment);
      }
    }
    drag = null;
  });
  stage.addEventListener("pointercancel", () => (drag = null));
  stage.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && tell(-1));
  stage.addEventListener("dblclick", (event) => {
    const wire = wireOf(event, inputs);
    if (wire >= 0) edit(wire);
  });

  // The keyboard.

  const isComparator = (event) => comparators.contains(event.target);
  stage.addEventListener("focusin", (event) => {
    const wire = Math.max(wireOf(event, inputs), wireOf(event, outputs));
    if (wire >= 0) rove(wire);
    if (isComparator(event)) tell(currentComparator);
  });
  stage.addEventListener("focusout", (event) => isComparator(event) && tell(-1));
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const [input, output] = [wireOf(event, inputs), wireOf(event, outputs)];
    const list = input >= 0 ? chips.inputs : chips.outputs;
    if (isComparator(event) && step) {
      roveComparator(clamp(currentComparator + step, 0, net.comparators.length - 1));
      paths.comparators[currentComparator].focus();
    } else if (input < 0 && output < 0) return;
    else if (event.key === "ArrowUp" || event.key === "ArrowDown")
      list[clamp(Math.max(input, output) + step, 0, net.n - 1)].node.focus();
    else if (input >= 0 && step) on.nudgeInput(input, step * (event.shiftKey ? 10 : 1), on.unit());
    else if (input >= 0 && event.key === "Enter") edit(input);
    else if (input >= 0 && event.key === " ") on.clickInput(input);
    else if (output >= 0 && (event.key === "Enter" || event.key === " ")) on.pick(output);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  /** Put a field in the place of an input, to type its value; a bit is only flipped. */
  function edit(wire) {
    const { node, box } = chips.inputs[wire];
    if (node.getAttribute("role") === "switch") return;
    const [x, wide] = [Number(box.getAttribute("x")) - 4, Number(box.getAttribute("width")) + 8];
    const field = document.createElement("input");
    field.className = "nsc-edit";
    set(field, { "aria-label": `Value of input ${wire}`, inputmode: "decimal" });
    field.value = String(on.valueOf(wire));
    const place = svg("foreignObject", { x, y: -14, width: wide, height: 28 }, field);
    place.setAttribute("transform", node.getAttribute("transform"));
    let isOpen = true;
    const close = (isKept) => {
      if (!isOpen) return;
      isOpen = false;
      place.remove();
      const fault = isKept ? on.typeInput(wire, field.value) : "";
      const { right, bottom } = box.getBoundingClientRect();
      if (fault) tip.show(`${fault}: ${on.valueOf(wire)} stays`, right, bottom);
      else tip.hide();
    };
    field.addEventListener("blur", () => close(true));
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      close(event.key === "Enter");
      node.focus();
      event.preventDefault();
    });
    inputs.append(place); // in front of all values
    field.focus({ preventScroll: true }); // the inputs are always in view
    field.select();
  }

  new ResizeObserver(() => host.clientWidth !== width && resize()).observe(host);
  return { setNetwork, show, fit, zoom };
}

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
function layoutOf(net) {
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
function segmentPath(layout, segment) {
  const left = segment.from < 0 ? 0 : layout.x[segment.from];
  const right = segment.to < 0 ? layout.width : layout.x[segment.to];
  return `M${round(left)} ${round((segment.wire + 0.5) * layout.row)}H${round(right)}`;
}

/**
 * Return the path of a comparator: a line, a dot on each wire that is needed behind it, and for a reversed one
 * an arrowhead below its upper dot. A wire that is not needed gets a short bar.
 */
function comparatorPath(layout, c, index, needed) {
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
