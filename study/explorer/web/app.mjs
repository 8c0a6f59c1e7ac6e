/**
 * The explorer: `mount(element, facts)` shows a network in an element.
 *
 * study/explorer/facts.py makes the facts. All that the page shows follows from them and from one
 * state, which its link holds: an event changes the state, and the next frame shows it.
 */
import { makeNetwork } from "./network.mjs";
import { amount } from "./colours.mjs";
import { capital, h, iconButton, makeChoice, makeTerm } from "./elements.mjs";
import { TABS, counted, linkOf, readBit, readNumber, startOf, stateOf } from "./state.mjs";
import { makeDiagram } from "./diagram.mjs";
import { makeHeatMap } from "./heat_map.mjs";
import { boundsView, copied, makeTexts, proofView } from "./views.mjs";
import { runsOf, targetOf, unitsOf, viewOf, wordsOfComparator } from "./looks.mjs";
import { makePlayer, positionWords } from "./player.mjs";
import { makeInputs, makeKeys, makePaints, makeRanks, makeSoft } from "./panels.mjs";
import { legendOf, showNotice } from "./legend.mjs";

const TAB_NAMES = { explore: "Explore", formats: "Formats", code: "Code", bounds: "Bounds", proof: "Proof" };
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
  let theme = chosenTheme() ?? systemTheme();
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
  const lead = h("p", { class: "nsc-lead" }, LEAD);
  const diagram = makeDiagram(stageHost, diagramEvents());
  const heatMap = makeHeatMap(heatHost, {
    say,
    pick: (row, column) => update({ of: column < 0 ? `y${row}` : `p${row}.${column}` }),
  });
  const mode = makeChoice(
    "Mode",
    [
      ["exact", "Exact"],
      ["bits", "0-1"],
      ["soft", "Soft"],
    ],
    (value) => update({ mode: value }),
  );
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
  const matrix = h(
    "section",
    { class: "nsc-card" },
    h("div", { class: "nsc-card-head" }, h("h2", {}, "Relaxed permutation matrix P"), soft.scale),
    makeTerm("P", "row r, column c: how much of input c leaves on wire r. Point at an entry, or touch it."),
    heatHost,
  );
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
  const tabs = makeTabs();
  const keys = makeKeys();
  root.append(header(), tabs.node, ...Object.values(panels), footer(), keys, live);
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
  addEventListener("beforeprint", () => showTheme("light"));
  addEventListener("afterprint", () => showTheme(chosenTheme() ?? systemTheme()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener(
    "change",
    () => !chosenTheme() && setTheme(systemTheme()),
  );
  // A page that shows this one in a frame says when its own theme changes.
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || !["light", "dark"].includes(data?.nscTheme)) return;
    keepTheme(data.nscTheme);
    setTheme(data.nscTheme);
  });
  new ResizeObserver(() => state.mode === "soft" && update({})).observe(heatHost);
  render();
  return { state: () => ({ ...state }), update };

  // The parts of the page.

  function header() {
    const size = facts.layers.reduce((sum, layer) => sum + layer.length, 0);
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
      setTheme(theme === "dark" ? "light" : "dark");
      keepTheme(theme);
    });
    return h(
      "header",
      { class: "nsc-header" },
      h(
        "div",
        { class: "nsc-title" },
        h("h1", {}, facts.title),
        h("p", {}, `${counted(size, "comparator")} in ${counted(facts.layers.length, "layer")}`, badge),
      ),
      h(
        "div",
        { class: "nsc-tools" },
        hasLink ? link : null,
        themes,
        iconButton("keys", "Keyboard and mouse", () => keys.showModal()),
      ),
    );
  }

  function footer() {
    const words = `Made by nsc ${facts.version}. This page holds all it needs: it loads and sends nothing.`;
    return h("footer", { class: "nsc-footer" }, words);
  }

  function explorePanel() {
    const zoom = h(
      "div",
      { class: "nsc-zoom", role: "group", "aria-label": "Zoom" },
      iconButton("minus", "Smaller", () => diagram.zoomAt(1 / ZOOM)),
      iconButton("plus", "Larger", () => diagram.zoomAt(ZOOM)),
      iconButton("fit", "Fit", () => diagram.fit()),
    );
    const card = h(
      "section",
      { class: "nsc-card nsc-diagram", "aria-label": "Diagram" },
      lead,
      h("div", { class: "nsc-toolbar" }, mode.node, player.node, zoom),
      notice,
      stageHost,
      legend,
    );
    return h(
      "div",
      { class: "nsc-explore" },
      h("div", { class: "nsc-main" }, card, matrix),
      h("aside", { class: "nsc-side", "aria-label": "Settings" }, ...settings.map(({ node }) => node)),
    );
  }

  function makeTabs() {
    const buttons = TABS.map((name) => {
      // A page may show several explorers.
      const id = `nsc-${name}-${Math.random().toString(36).slice(2)}`;
      panels[name].id = id;
      panels[name].setAttribute("role", "tabpanel");
      panels[name].setAttribute("aria-labelledby", `${id}-tab`);
      const attributes = { type: "button", role: "tab", id: `${id}-tab`, "aria-controls": id };
      return h("button", { ...attributes, onclick: () => update({ tab: name }) }, TAB_NAMES[name]);
    });
    const node = h("div", { class: "nsc-tabs", role: "tablist", "aria-label": "Views" }, ...buttons);
    node.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const at = (TABS.indexOf(state.tab) + step + TABS.length) % TABS.length;
      update({ tab: TABS[at] });
      buttons[at].focus();
      event.preventDefault();
      event.stopPropagation();
    });
    const show = () =>
      TABS.forEach((name, index) => {
        const isShown = name === state.tab;
        panels[name].hidden = !isShown;
        buttons[index].setAttribute("aria-selected", String(isShown));
        buttons[index].tabIndex = isShown ? 0 : -1;
        if (isShown && tab !== name) bringIntoView(buttons[index]);
      });
    /** Scroll the tabs of a narrow phone, and nothing else. */
    const bringIntoView = (button) => {
      const [own, all] = [button.getBoundingClientRect(), node.getBoundingClientRect()];
      node.scrollLeft += Math.max(0, own.right - all.right) + Math.min(0, own.left - all.left);
    };
    return { node, show };
  }

  // From the state to the page.

  function render() {
    frame = 0;
    if (isMended !== state.mended) {
      isMended = state.mended;
      net = makeNetwork(facts.n, facts.layers, mend, isMended);
      diagram.setNetwork(net);
    }
    tabs.show();
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
    if (state.mode === "soft") heatMap.show(matrixOf());
    legend.replaceChildren(...legendOf(net, state, facts, runs, theme));
    showNotice(notice, view, state, facts, update);
  }

  function matrixOf() {
    const { n } = facts;
    const { P, values, ranks, gradient, least, most } = runs;
    const rowSums = new Array(n).fill(0);
    const columnSums = new Array(n).fill(0);
    P.forEach((share, place) => {
      rowSums[Math.floor(place / n)] += share;
      columnSums[place % n] += share;
    });
    const { row, column } = targetOf(state.of);
    return {
      n,
      P,
      most: Math.max(...P),
      rowSums,
      columnSums,
      values: net.outputs.map((segment) => values[segment]),
      ranks: [...ranks],
      gradient: [...gradient.slice(0, n)],
      valueColour: (value) => amount((value - least) / (most - least || 1), theme),
      row,
      column: column >= 0 ? column : row >= 0 ? -1 : state.follow,
      theme,
    };
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

  function setTheme(next) {
    theme = next;
    root.dataset.theme = next;
    update({});
  }

  /** Show a theme at once: paper is printed before the next frame. */
  function showTheme(next) {
    if (!root.isConnected) return;
    setTheme(next);
    cancelAnimationFrame(frame);
    render();
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
      valueOf: (wire) => (isBits() ? state.bits : state.x)[wire],
      // A tenth of the values' range, at most, as a power of ten: by how much a key or a few pixels change one.
      unit: () => 10 ** Math.floor(Math.log10((Math.max(...state.x) - Math.min(...state.x) || 1) / 20)),
      typeInput: (wire, text) => {
        const { found, fault } = (isBits() ? readBit : readNumber)(text);
        if (fault) say(fault);
        else if (!isBits()) set(wire, found);
        else if (found !== state.bits[wire]) flip(wire);
        return fault ?? "";
      },
      moveInput: (wire, value, unit) => !isBits() && set(wire, rounded(value, unit)),
      nudgeInput: (wire, count, unit) =>
        isBits() ? flip(wire) : set(wire, rounded(state.x[wire] + count * unit, unit)),
      clickInput: (wire) => (isBits() ? flip(wire) : follow(wire)),
      pick: (wire, isChoosing) => {
        if (isChoosing) choose(wire);
        else if (state.mode === "soft") update({ of: `y${wire}` });
        else follow(runs.exact.items[net.outputs[wire]]);
      },
      followAt: (segment) => follow(runs.exact.items[segment]),
      describe: (index) => wordsOfComparator(net, state, facts, runs, index),
    };
  }

  /** Choose the rank of an output wire, or leave it out. */
  function choose(wire) {
    const known = facts.ranks.map(([carrier]) => carrier);
    if (!known.includes(wire)) return;
    const chosen = new Set(state.chosen);
    if (!chosen.delete(wire)) chosen.add(wire);
    if (chosen.size > 0 && (chosen.size < known.length || facts.is_selection))
      update({ chosen: [...chosen].sort((a, b) => a - b) });
    else if (!facts.is_selection) update({ chosen: null });
  }

  function onKey(event) {
    const { target, key } = event;
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.type !== "range";
    const isElsewhere =
      isTyping || (target.closest?.("dialog, pre, .nsc-scroll") !== null && target !== document.body);
    if (!root.isConnected || isElsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
    if (state.tab !== "explore") return;
    if (target.type === "range" && /^(Arrow|Home|End)/.test(key)) return;
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
      "+": () => diagram.zoomAt(ZOOM),
      "=": () => diagram.zoomAt(ZOOM),
      "-": () => diagram.zoomAt(1 / ZOOM),
      0: () => diagram.fit(),
      Escape: () => update({ follow: -1 }),
    };
    if (!Object.hasOwn(actions, key)) return;
    actions[key]();
    event.preventDefault();
  }
}

const systemTheme = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

/** Return the theme that a person chose; null: none, or a page in a frame without storage. */
function chosenTheme() {
  try {
    const theme = sessionStorage.getItem("nsc-theme");
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null;
  }
}

function keepTheme(theme) {
  try {
    sessionStorage.setItem("nsc-theme", theme);
  } catch {
    // Without storage it lasts as long as the page.
  }
}
