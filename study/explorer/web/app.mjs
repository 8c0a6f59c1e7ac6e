/**
 * The explorer: `mount(element, facts)` shows a network in an element.
 *
 * study/explorer/facts.py makes the facts. All that the page shows follows from them and from one
 * state, which its link holds: an event changes the state, and the next frame shows it.
 */
import { makeNetwork } from "./network.mjs";
import { capital, h, html, iconButton, makeChoice, makeTerm } from "./elements.mjs";
import { counted, linkOf, readNumber, startOf, stateOf } from "./state.mjs";
import { makeDiagram } from "./diagram.mjs";
import { makeHeatMap } from "./heat_map.mjs";
import { boundsView, copied, makeTexts, proofView } from "./views.mjs";
import { runsOf, unitsOf, viewOf, wordsOfComparator } from "./looks.mjs";
import { makePlayer, positionWords } from "./player.mjs";
import { makeInputs, makeKeys, makePaints, makeRanks, makeSoft } from "./panels.mjs";
import { legendOf, showNotice } from "./legend.mjs";

const TAB_CHOICES = [
  ["explore", "Explore"],
  ["formats", "Formats"],
  ["code", "Code"],
  ["bounds", "Bounds"],
  ["proof", "Proof"],
];
const MODE_CHOICES = [
  ["exact", "Exact"],
  ["bits", "0-1"],
  ["soft", "Soft"],
];
// A first visitor reads this.
const LEAD =
  "Values run from left to right; each vertical line is a comparator, which puts its two values in order, the " +
  "larger one below: press play, or type values of your own.";
const ZOOM = 1.4;
// Values are told to screen readers with each step up to this many wires.
const MOST_TOLD = 16;
const LINK_DELAY = 250;

/**
 * Show a network in an element.
 * @param {HTMLElement} element Its content is replaced.
 * @param {object} facts
 * @param {{link?: boolean}} options Whether the address of the page holds the state; default: yes, where the
 *   page has an address of its own.
 */
export function mount(element, facts, options = {}) {
  const hasLink = options.link ?? /^(file|https?):$/.test(location.protocol);
  const start = startOf(facts);
  const mend = facts.proof.failure?.mend ?? null;
  let state = hasLink ? stateOf(location.hash, start, facts) : start;
  // The theme that a person chose, or the page around this one; null: the system's.
  let chosen = null;
  let theme = systemTheme();
  let frame = 0;
  let linkTimer = 0;
  // The view: the network, with or without its mend, what it made of the input, and the tab.
  let net = null;
  let isMended = null;
  let runs = null;
  let tab = null;

  function update(changes) {
    if (!root.isConnected) return; // another has taken its place
    state = { ...state, ...changes };
    if (!frame) frame = requestAnimationFrame(render);
  }

  const root = h("div", { class: "nsc-explorer", "data-theme": theme });
  const live = h("div", { class: "nsc-hidden", "aria-live": "polite" });
  const say = (words) => (live.textContent = words);
  const stageHost = h("div", { class: "nsc-stage-host" });
  const heatHost = h("div", { class: "nsc-heat-host" });
  const notice = h("div", { class: "nsc-notice" });
  const legend = h("div", { class: "nsc-legend" });
  const diagram = makeDiagram(stageHost, diagramEvents());
  const heatMap = makeHeatMap(heatHost, {
    say,
    pick: (row, column) => update({ of: column < 0 ? `y${row}` : `p${row}.${column}` }),
  });
  const mode = makeChoice("Mode", MODE_CHOICES, (value) => update({ mode: value }));
  const player = makePlayer((step) => update({ step }), tellStep);
  const inputs = makeInputs(facts, update);
  const soft = makeSoft(facts, update);
  const settings = [inputs, soft, makeRanks(facts, update), makePaints(facts, update)];
  const formats = makeTexts(facts.formats, "", (name) => update({ format: name }));
  const sources = makeTexts(
    facts.sources,
    "nsc writes no code for a network that it has refuted. The tab Proof says where it fails.",
    (name) => update({ source: name }),
  );
  const matrix = html`<section class="nsc-card">
    <div class="nsc-card-head"><h2>Relaxed permutation matrix P</h2>${soft.scale}</div>
    ${makeTerm("P", "row r, column c: how much of input c leaves on wire r. Point at an entry, or touch it.")}
    ${heatHost}
  </section>`;
  const panels = {
    explore: explorePanel(),
    formats: formats.node,
    code: sources.node,
    bounds: boundsView(facts),
    proof: proofView(facts, () =>
      update({
        tab: "explore",
        mode: "bits",
        bits: [...facts.proof.failure.vector],
        step: null,
        mended: false,
      }),
    ),
  };
  for (const [name, words] of TAB_CHOICES) {
    panels[name].classList.add("nsc-panel");
    panels[name].setAttribute("role", "region");
    panels[name].setAttribute("aria-label", words);
  }
  const tabs = makeChoice("Views", TAB_CHOICES, (name) => update({ tab: name }), "nsc-tabs");
  const keys = makeKeys();
  const footer = html`<footer class="nsc-footer">
    ${`Made by nsc ${facts.version}. This page holds all it needs: it loads and sends nothing.`}
  </footer>`;
  root.append(header(), tabs.node, ...Object.values(panels), footer, keys, live);
  element.replaceChildren(root);
  root.addEventListener("keydown", onKey);
  // Keys work too where nothing has the focus, unless the page shows more than one explorer.
  if (element.parentElement === document.body) {
    const isAlone = () => document.querySelectorAll(".nsc-explorer").length === 1;
    document.addEventListener("keydown", (event) => {
      if (event.target === document.body && isAlone()) onKey(event);
    });
  }
  if (hasLink) addEventListener("hashchange", () => update(stateOf(location.hash, start, facts)));
  DARK.addEventListener("change", () => showTheme());
  // A page that shows this one in a frame says which theme it has.
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || !["light", "dark"].includes(data?.nscTheme)) return;
    chosen = data.nscTheme;
    showTheme();
  });
  new ResizeObserver(() => state.mode === "soft" && update({})).observe(heatHost);
  render();
  return { state: () => ({ ...state }), update };

  // The parts of the page.

  function header() {
    const words = facts.is_selection
      ? facts.proof.verdict
      : { proved: "proved to sort", refuted: "does not sort", unproved: "unproved" }[facts.proof.verdict];
    const badge = h(
      "button",
      { type: "button", class: `nsc-badge ${facts.proof.verdict}`, onclick: () => update({ tab: "proof" }) },
      words,
    );
    const link = iconButton("link", "Copy a link to this state", async () => {
      writeLink();
      say((await copied(location.href)) ? "The link is copied" : "The link is in the address bar");
      link.classList.add("is-done");
      setTimeout(() => link.classList.remove("is-done"), 1200);
    });
    const themes = iconButton("theme", "Light or dark", () => {
      chosen = theme === "dark" ? "light" : "dark";
      showTheme();
    });
    const size = facts.layers.flat().length;
    return html`<header class="nsc-header">
      <div class="nsc-title">
        <h1>${facts.title}</h1>
        <p>${[`${counted(size, "comparator")} in ${counted(facts.layers.length, "layer")}`, badge]}</p>
      </div>
      <div class="nsc-tools">
        ${[hasLink ? link : null, themes, iconButton("keys", "Keyboard and mouse", () => keys.showModal())]}
      </div>
    </header>`;
  }

  function explorePanel() {
    const zoom = [
      iconButton("minus", "Smaller", () => diagram.zoom(1 / ZOOM)),
      iconButton("plus", "Larger", () => diagram.zoom(ZOOM)),
      iconButton("fit", "Fit", () => diagram.fit()),
    ];
    return html`<div class="nsc-explore">
      <div class="nsc-main">
        <section class="nsc-card nsc-diagram" aria-label="Diagram">
          <p class="nsc-lead">${LEAD}</p>
          <div class="nsc-toolbar">
            ${[mode.node, player.node]}
            <div class="nsc-zoom" role="group" aria-label="Zoom">${zoom}</div>
          </div>
          ${[notice, stageHost, legend]}
        </section>
        ${matrix}
      </div>
      <aside class="nsc-side" aria-label="Settings">${settings.map(({ node }) => node)}</aside>
    </div>`;
  }

  // From the state to the page.

  function render() {
    frame = 0;
    if (isMended !== state.mended) {
      isMended = state.mended;
      net = makeNetwork(facts.n, facts.layers, mend, isMended);
      diagram.setNetwork(net);
    }
    tabs.show(state.tab);
    for (const [name, panel] of Object.entries(panels)) panel.hidden = name !== state.tab;
    if (state.tab === "formats") formats.show(state.format);
    if (state.tab === "code") sources.show(state.source);
    if (state.tab === "explore") {
      if (tab !== state.tab) diagram.fit();
      renderExplore();
    } else player.pause();
    tab = state.tab;
    clearTimeout(linkTimer);
    linkTimer = setTimeout(writeLink, LINK_DELAY);
  }

  function renderExplore() {
    runs = runsOf(net, state);
    const units = unitsOf(net, state, facts);
    const step = Math.min(state.step ?? units.length, units.length);
    const view = viewOf(net, state, facts, runs, { units, step, theme });
    diagram.show(view);
    mode.show(state.mode);
    player.show({
      step,
      count: units.length,
      noun: state.paint === "codelets" && facts.cut ? "codelet" : "layer",
    });
    for (const panel of settings) panel.show(state, runs);
    matrix.hidden = state.mode !== "soft";
    if (state.mode === "soft") heatMap.show(net, state, runs, theme);
    legend.replaceChildren(...legendOf(net, state, facts, runs, theme));
    showNotice(notice, view, state, facts, update);
  }

  function tellStep(position) {
    requestAnimationFrame(() => {
      const values = [...stageHost.querySelectorAll(".nsc-outputs .nsc-value")].map(
        (node) => node.textContent,
      );
      say(`${capital(positionWords(position))}${facts.n <= MOST_TOLD ? `: ${values.join(", ")}` : ""}`);
    });
  }

  function writeLink() {
    if (!hasLink) return;
    const link = linkOf(state, start);
    if (link === location.hash.slice(1)) return;
    try {
      history.replaceState(null, "", link ? `#${link}` : location.pathname + location.search);
    } catch {
      // Too many changes in a short time: the next one is kept.
    }
  }

  function showTheme() {
    theme = chosen ?? systemTheme();
    root.dataset.theme = theme;
    update({});
  }

  // From events to the state.

  function diagramEvents() {
    const set = (wire, value) =>
      Number.isFinite(value) && update({ x: state.x.map((old, index) => (index === wire ? value : old)) });
    const flip = (wire) => update({ bits: state.bits.map((bit, index) => (index === wire ? 1 - bit : bit)) });
    const follow = (wire) => update({ follow: state.follow === wire ? -1 : wire });
    const rounded = (value, unit) => Number((Math.round(value / unit) * unit).toPrecision(15));
    const isBits = () => state.mode === "bits";
    return {
      valueOf: (wire) => state.x[wire],
      // A tenth of the values' range, at most, as a power of ten: by how much a key or a few pixels change one.
      unit: () => 10 ** Math.floor(Math.log10((Math.max(...state.x) - Math.min(...state.x) || 1) / 20)),
      typeInput: (wire, text) => {
        const { found, fault } = readNumber(text);
        if (fault) say(fault);
        else set(wire, found);
        return fault ?? "";
      },
      moveInput: (wire, value, unit) => !isBits() && set(wire, rounded(value, unit)),
      nudgeInput: (wire, count, unit) =>
        isBits() ? flip(wire) : set(wire, rounded(state.x[wire] + count * unit, unit)),
      clickInput: (wire) => (isBits() ? flip(wire) : follow(wire)),
      pick: (wire) =>
        state.mode === "soft" ? update({ of: `y${wire}` }) : follow(runs.exact.items[net.outputs[wire]]),
      followAt: (segment) => follow(runs.exact.items[segment]),
      describe: (index) => wordsOfComparator(net, state, facts, runs, index),
    };
  }

  function onKey(event) {
    const { target, key } = event;
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !/range|radio/.test(target.type);
    const isElsewhere =
      isTyping || (target.closest?.("dialog, pre, .nsc-scroll") !== null && target !== document.body);
    if (!root.isConnected || isElsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
    if (state.tab !== "explore") return;
    if (/range|radio/.test(target.type) && /^(Arrow|Home|End)/.test(key)) return;
    if (key === " " && target.tagName === "BUTTON") return;
    const actions = {
      ArrowLeft: () => player.move(-1),
      ArrowRight: () => player.move(1),
      Home: () => player.goTo(0),
      End: () => player.toEnd(),
      " ": () => player.toggle(),
      1: () => update({ mode: "exact" }),
      2: () => update({ mode: "bits" }),
      3: () => update({ mode: "soft" }),
      "+": () => diagram.zoom(ZOOM),
      "=": () => diagram.zoom(ZOOM),
      "-": () => diagram.zoom(1 / ZOOM),
      0: () => diagram.fit(),
      Escape: () => update({ follow: -1 }),
    };
    if (!Object.hasOwn(actions, key)) return;
    actions[key]();
    event.preventDefault();
  }
}

const DARK = matchMedia("(prefers-color-scheme: dark)");
const systemTheme = () => (DARK.matches ? "dark" : "light");

const place = document.getElementById("explorer");
if (place) {
  mount(place, JSON.parse(document.getElementById("explorer-facts").textContent));
  // A page that shows this one in a frame may make the frame as high, so that nothing scrolls in it.
  if (parent !== window)
    new ResizeObserver(() => parent.postMessage({ nscHeight: Math.ceil(place.offsetHeight) }, "*")).observe(place);
}
