/**
 * The explorer: `mount(element, facts)` shows a network in an element.
 *
 * The facts are those of compiler/drawing/facts.py. All that the page shows follows from them and from one
 * state, which its link holds: an event changes the state, and the next frame shows it.
 */
import { makeNetwork, neededOf } from "./network.mjs";
import { heat, amount, kind, signed, inkOn } from "./colours.mjs";
import { h, icon, iconButton, makeChoice, makeSlider, wordButton } from "./elements.mjs";
import { LEAST_STEEPNESS, MOST_LAMBDA, MOST_STEEPNESS, TABS, linkOf, numbersOf, startOf, stateOf, wiresOf } from "./state.mjs";
import { makeDiagram } from "./diagram.mjs";
import { makeHeatMap, short } from "./heat_map.mjs";
import { boundsView, capital, copied, makeTexts, proofView } from "./views.mjs";
import { runsOf, targetOf, tooltipOf, trueRanks, unitsOf, viewOf } from "./looks.mjs";

const TAB_NAMES = { explore: "Explore", formats: "Formats", code: "Code", bounds: "Bounds", proof: "Proof" };
const SECONDS_A_STEP = 0.7;
const SHORTEST_PLAY = 0.08;
const LONGEST_PLAY = 12;

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
  let net = null;
  let runs = null;
  let units = [];
  let wrong = [];
  let frame = 0;
  let timer = 0;
  let theme = chosenTheme() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

  function update(changes) {
    state = { ...state, ...changes };
    if (!frame) frame = requestAnimationFrame(render);
  }

  // The parts of the page.

  const live = h("div", { class: "nsc-hidden", "aria-live": "polite" });
  const say = (words) => (live.textContent = words);
  const root = h("div", { class: "nsc-explorer", "data-theme": theme });
  const stageHost = h("div", { class: "nsc-stage-host" });
  const heatHost = h("div", { class: "nsc-heat-host" });
  const diagram = makeDiagram(stageHost, diagramEvents());
  const heatMap = makeHeatMap(heatHost, { say, pick: (row, column) => update({ of: column < 0 ? `y${row}` : `p${row}.${column}` }) });
  const mode = makeChoice("Mode", [["exact", "Exact"], ["bits", "0-1"], ["soft", "Soft"]], (value) => update({ mode: value }));
  const transport = makeTransport();
  const inputs = makeInputs();
  const ranks = makeRanks();
  const paints = makePaints();
  const soft = makeSoft();
  const legend = h("div", { class: "nsc-legend" });
  const notice = h("div", { class: "nsc-notice" });
  const formats = makeTexts(facts.formats, "", (name) => update({ format: name }));
  const sources = makeTexts(
    facts.sources,
    "nsc writes no code for a network that it has refuted. The tab Proof says where it fails.",
    (name) => update({ source: name }),
  );
  const softCard = h(
    "section",
    { class: "nsc-card nsc-matrix" },
    h("div", { class: "nsc-card-head" }, h("h2", {}, "Relaxed permutation matrix P"), soft.legend),
    heatHost,
  );
  const panels = {
    explore: h(
      "div",
      { class: "nsc-explore" },
      h(
        "div",
        { class: "nsc-main" },
        h(
          "section",
          { class: "nsc-card nsc-diagram", "aria-label": "Diagram" },
          h("div", { class: "nsc-toolbar" }, mode.node, transport.node, zoomButtons()),
          notice,
          stageHost,
          legend,
        ),
        softCard,
      ),
      h("aside", { class: "nsc-side", "aria-label": "Settings" }, inputs.node, soft.node, ranks.node, paints.node),
    ),
    formats: formats.node,
    code: sources.node,
    bounds: boundsView(facts),
    proof: proofView(facts, () => showFailure()),
  };
  const tabs = TABS.map((name) =>
    h(
      "button",
      { type: "button", role: "tab", id: `nsc-tab-${name}`, "aria-controls": `nsc-panel-${name}`, onclick: () => update({ tab: name }) },
      TAB_NAMES[name],
    ),
  );
  for (const name of TABS) {
    const panel = panels[name];
    panel.setAttribute("role", "tabpanel");
    panel.id = `nsc-panel-${name}`;
    panel.setAttribute("aria-labelledby", `nsc-tab-${name}`);
  }
  const keys = makeKeys();
  const themeButton = iconButton("theme", "Light or dark", () => setTheme(theme === "dark" ? "light" : "dark"));
  const linkButton = iconButton("link", "Copy a link to this state", async () => {
    writeLink();
    const isCopied = await copied(location.href);
    say(isCopied ? "The link is copied" : "The link is in the address bar");
    linkButton.classList.add("is-done");
    setTimeout(() => linkButton.classList.remove("is-done"), 1200);
  });
  root.append(
    h(
      "header",
      { class: "nsc-header" },
      h("div", { class: "nsc-title" }, h("h1", {}, facts.title), h("p", {}, ...headline())),
      h(
        "div",
        { class: "nsc-tools" },
        hasLink ? linkButton : null,
        themeButton,
        iconButton("keys", "Keyboard and mouse", () => keys.showModal()),
      ),
    ),
    h("div", { class: "nsc-tabs", role: "tablist", "aria-label": "Views", onkeydown: moveTab }, ...tabs),
    ...Object.values(panels),
    h("footer", { class: "nsc-footer" }, `Made by nsc ${facts.version}. This page holds all it needs: it loads and sends nothing.`),
    keys,
    live,
  );
  element.replaceChildren(root);
  root.addEventListener("keydown", onKey);
  if (element.parentElement === document.body) document.addEventListener("keydown", (event) => event.target === document.body && onKey(event));
  if (hasLink) addEventListener("hashchange", () => update(stateOf(location.hash, start, facts)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if (!chosenTheme()) setTheme(event.matches ? "dark" : "light", false);
  });
  new ResizeObserver(() => state.mode === "soft" && update({})).observe(heatHost);

  function headline() {
    const size = facts.layers.reduce((sum, layer) => sum + layer.length, 0);
    const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
    const words = { proved: facts.is_selection ? "proved" : "proved to sort", refuted: facts.is_selection ? "refuted" : "does not sort", unproved: "unproved" };
    return [
      `${counted(size, "comparator")} in ${counted(facts.layers.length, "layer")} `,
      h("button", { type: "button", class: `nsc-badge ${facts.proof.verdict}`, onclick: () => update({ tab: "proof" }) }, words[facts.proof.verdict]),
    ];
  }

  // From the state to the page.

  let shownMend = null;
  let lastTab = null;

  function render() {
    frame = 0;
    if (!net || shownMend !== state.mended) {
      net = makeNetwork(facts.n, facts.layers, mend, state.mended);
      shownMend = state.mended;
      diagram.setNetwork(net);
    }
    units = unitsOf(net, state, facts);
    TABS.forEach((name, index) => {
      const isShown = name === state.tab;
      panels[name].hidden = !isShown;
      tabs[index].setAttribute("aria-selected", String(isShown));
      tabs[index].tabIndex = isShown ? 0 : -1;
    });
    if (state.tab === "formats") formats.show(state.format);
    if (state.tab === "code") sources.show(state.source);
    if (lastTab !== state.tab && state.tab === "explore") diagram.fit();
    lastTab = state.tab;
    if (state.tab === "explore") renderExplore();
    clearTimeout(linkTimer);
    linkTimer = setTimeout(writeLink, 250);
  }

  let linkTimer = 0;

  function writeLink() {
    if (!hasLink) return;
    const link = linkOf(state, start);
    if (link === location.hash.slice(1)) return;
    try {
      history.replaceState(null, "", link ? `#${link}` : location.pathname + location.search);
    } catch {
      // Too many changes in a short time, or a page without an address: the state is not kept.
    }
  }

  function renderExplore() {
    runs = runsOf(net, state);
    const step = stepOf();
    const view = viewOf(net, state, facts, runs, { units, step, theme });
    wrong = view.wrong;
    diagram.show(view);
    mode.show(state.mode);
    transport.show(step);
    inputs.show();
    ranks.show();
    paints.show();
    soft.show();
    softCard.hidden = state.mode !== "soft";
    if (state.mode === "soft") heatMap.show(matrixOf());
    showLegend();
    showNotice(step);
  }

  const stepOf = () => Math.min(state.step ?? units.length, units.length);

  function matrixOf() {
    const { n } = facts;
    const rowSums = new Array(n).fill(0);
    const columnSums = new Array(n).fill(0);
    runs.P.forEach((share, place) => {
      rowSums[Math.floor(place / n)] += share;
      columnSums[place % n] += share;
    });
    const span = runs.most - runs.least || 1;
    const target = targetOf(state.of);
    return {
      n,
      P: runs.P,
      most: runs.P.reduce((most, share) => Math.max(most, share), 0),
      rowSums,
      columnSums,
      values: net.outputs.map((segment) => runs.values[segment]),
      ranks: [...runs.ranks],
      gradient: [...runs.gradient.slice(0, n)],
      valueColour: (value) => amount((value - runs.least) / span, theme),
      row: target.row,
      column: target.column >= 0 ? target.column : target.row >= 0 ? -1 : state.follow,
      theme,
    };
  }

  function showLegend() {
    const bar = (colours, from, to) =>
      h("span", { class: "nsc-scale" }, from, h("i", { style: `background:linear-gradient(90deg,${colours.join(",")})` }), to);
    const ten = [...Array(9).keys()].map((place) => place / 8);
    const swatch = (colour, words) => h("span", { class: "nsc-swatch" }, h("i", { style: `background:${colour}` }), words);
    const items = [];
    const group = (name, ...parts) => items.push(h("span", { class: "nsc-legend-item" }, h("b", {}, name), ...parts));
    if (state.mode === "bits") group("wires", swatch(runsColour(1), "1"), swatch(runsColour(0), "0"));
    else if (state.mode === "soft" && state.show === "gradient") {
      const most = Math.max(...runs.gradient.map(Math.abs));
      group("gradient", bar(ten.map((place) => signed(2 * place - 1, theme)), `−${short(most)}`, short(most)));
    } else group("values", bar(ten.map((place) => amount(place, theme)), short(runs.least), short(runs.most)));
    if (state.paint === "codelets") group("comparators", `coloured by codelet, which run one behind the other`);
    else if (state.paint === "cone") {
      group("comparators", swatch(kind(0), "in the light cone"), ...(facts.cut?.reached ? [swatch(kind(1), "run with it")] : []));
    } else if (state.mode === "soft") group("comparators", bar(ten.map((place) => amount(place, theme)), "swap", "keep"));
    else group("comparators", swatch(theme === "dark" ? "rgb(122,167,255)" : "rgb(36,87,197)", "exchange"), swatch(theme === "dark" ? "rgb(190,200,212)" : "rgb(60,70,82)", "leave"));
    if (state.chosen) {
      const needed = neededOf(net, state.chosen);
      const counts = [0, 0, 0, 0];
      needed.forEach((kindOf) => counts[kindOf]++);
      group("chosen ranks need", `${counts[3]} whole, ${counts[1] + counts[2]} half, ${counts[0]} dead`);
    }
    legend.replaceChildren(...items);
  }

  const runsColour = (bit) => (bit ? (theme === "dark" ? "rgb(255,158,66)" : "rgb(200,84,0)") : theme === "dark" ? "rgb(92,104,118)" : "rgb(166,176,188)");

  function showNotice(step) {
    const parts = [];
    const { failure } = facts.proof;
    if (wrong.length && failure) {
      const layer = failure.layer === null ? "" : ` They were last touched in layer ${failure.layer}.`;
      parts.push(`Wrong on ${wrong.length === 1 ? "wire" : "wires"} ${listed(wrong)}.${layer}`);
    } else if (wrong.length) parts.push(`Wrong on ${wrong.length === 1 ? "wire" : "wires"} ${listed(wrong)}.`);
    if (mend) {
      if (state.mended) parts.push(`Mended: ${mend.words}.`);
      parts.push(wordButton(state.mended ? "Take the mend out" : `Mend it: ${mend.words}`, () => update({ mended: !state.mended, step: null })));
    }
    notice.replaceChildren(...parts.map((part) => (typeof part === "string" ? h("span", {}, part) : part)));
    notice.hidden = parts.length === 0;
    notice.classList.toggle("is-wrong", wrong.length > 0 && step === units.length);
  }

  const listed = (numbers) => (numbers.length > 12 ? `${numbers.slice(0, 12).join(", ")}, …` : numbers.join(", "));

  // The parts beside the diagram. Each has a node and a function that shows the state.

  function makeTransport() {
    const play = iconButton("play", "Play", () => (timer ? pause() : startPlaying()));
    const range = h("input", { type: "range", min: 0, step: 1, class: "nsc-step", oninput: () => goTo(Number(range.value)) });
    const label = h("output", { class: "nsc-where" });
    const node = h(
      "div",
      { class: "nsc-transport", role: "group", "aria-label": "Steps" },
      iconButton("first", "To the inputs", () => goTo(0)),
      iconButton("back", "Step back", () => goTo(stepOf() - 1)),
      play,
      iconButton("next", "Step", () => goTo(stepOf() + 1)),
      iconButton("end", "To the outputs", () => goTo(units.length)),
      range,
      label,
    );
    const show = (step) => {
      const noun = state.paint === "codelets" && facts.cut ? "codelet" : "layer";
      range.max = String(units.length);
      range.value = String(step);
      range.setAttribute("aria-label", `${capital(noun)}s that have run`);
      range.setAttribute("aria-valuetext", `${step} of ${units.length} ${noun}s`);
      label.textContent = `${noun} ${step} / ${units.length}`;
      const name = timer ? "pause" : "play";
      if (play.dataset.icon !== name) {
        play.replaceChildren(icon(name));
        play.dataset.icon = name;
        play.setAttribute("aria-label", timer ? "Pause" : "Play");
      }
    };
    return { node, show };
  }

  function goTo(step) {
    pause();
    const next = Math.min(units.length, Math.max(0, step));
    update({ step: next === units.length ? null : next });
    const noun = state.paint === "codelets" ? "codelet" : "layer";
    requestAnimationFrame(() => say(`After ${noun} ${next} of ${units.length}${facts.n <= 16 ? `: ${valuesNow().map(short).join(", ")}` : ""}`));
  }

  const valuesNow = () => [...stageHost.querySelectorAll(".nsc-outputs .nsc-value")].map((node) => Number(node.textContent.replace("−", "-")));

  function startPlaying() {
    if (stepOf() >= units.length) update({ step: 0 });
    const seconds = Math.max(SHORTEST_PLAY, Math.min(SECONDS_A_STEP, LONGEST_PLAY / Math.max(1, units.length)));
    timer = setInterval(() => {
      const next = stepOf() + 1;
      if (next >= units.length) pause();
      update({ step: next >= units.length ? null : next });
    }, seconds * 1000);
    update({});
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    update({});
  }

  function zoomButtons() {
    return h(
      "div",
      { class: "nsc-zoom", role: "group", "aria-label": "Zoom" },
      iconButton("minus", "Smaller", () => diagram.zoomAt(1 / 1.4)),
      iconButton("plus", "Larger", () => diagram.zoomAt(1.4)),
      iconButton("fit", "Fit", () => diagram.fit()),
    );
  }

  function makeInputs() {
    const field = h("textarea", {
      rows: facts.n > 24 ? 3 : 2, spellcheck: "false", "aria-label": "Input values, one for each wire", "aria-describedby": "nsc-input-note",
      oninput: () => {
        const found = state.mode === "bits" ? bitsOf(field.value) : numbersOf(field.value, facts.n);
        field.setAttribute("aria-invalid", String(!found));
        const words = state.mode === "bits" ? "zeros and ones" : "numbers";
        note.textContent = found ? "" : `${facts.n} ${words}, with spaces or commas between them`;
        if (found) update(state.mode === "bits" ? { bits: found } : { x: found });
      },
    });
    const note = h("p", { class: "nsc-remark", id: "nsc-input-note" });
    const presets = h("div", { class: "nsc-row" });
    const follow = h(
      "select",
      { "aria-label": "Item to follow", onchange: () => update({ follow: Number(follow.value) }) },
      h("option", { value: -1 }, "none"),
      ...[...Array(facts.n).keys()].map((wire) => h("option", { value: wire }, `of wire ${wire}`)),
    );
    const order = (compare) => [...state.x].sort(compare);
    const choices = {
      numbers: [
        wordButton("Shuffle", () => update({ x: shuffled(state.x) })),
        wordButton("Random", () => update({ x: state.x.map(() => Math.round(normal() * 100) / 100) })),
        wordButton("Ascending", () => update({ x: order((a, b) => a - b) })),
        wordButton("Descending", () => update({ x: order((a, b) => b - a) })),
      ],
      bits: [
        wordButton("Random", () => update({ bits: state.bits.map(() => Math.round(Math.random())) })),
        wordButton("Zeros", () => update({ bits: state.bits.map(() => 0) })),
        wordButton("Flip all", () => update({ bits: state.bits.map((bit) => 1 - bit) })),
      ],
    };
    if (facts.proof.failure) {
      choices.numbers.unshift(wordButton("Failing input", () => update({ x: [...facts.proof.failure.values], step: null })));
      choices.bits.unshift(wordButton("Counterexample", () => update({ bits: [...facts.proof.failure.vector], step: null })));
    }
    const node = h(
      "section",
      { class: "nsc-card" },
      h("h2", {}, "Input"),
      field,
      note,
      presets,
      h("label", { class: "nsc-field" }, h("span", { class: "nsc-label" }, "Follow the item"), follow),
    );
    let shownKind = "";
    const show = () => {
      const isBits = state.mode === "bits";
      const words = isBits ? state.bits.join(" ") : state.x.join(", ");
      if (document.activeElement !== field || shownKind !== state.mode) {
        field.value = words;
        note.textContent = "";
        field.setAttribute("aria-invalid", "false");
      }
      if (shownKind !== state.mode) presets.replaceChildren(...choices[isBits ? "bits" : "numbers"]);
      shownKind = state.mode;
      follow.value = String(state.follow);
    };
    return { node, show };
  }

  function bitsOf(text) {
    const bits = text.replace(/[\s,;]+/g, "");
    return /^[01]*$/.test(bits) && bits.length === facts.n ? [...bits].map(Number) : undefined;
  }

  function makeRanks() {
    const field = h("input", {
      type: "text", spellcheck: "false", placeholder: "all", "aria-label": "Chosen ranks",
      oninput: () => {
        const found = wiresOf(field.value, facts);
        field.setAttribute("aria-invalid", String(found === undefined));
        note.textContent = found === undefined ? `all, median, top 3, bottom 3, or ranks such as 0, 5-7 of 0 … ${facts.n - 1}` : "";
        if (found !== undefined) update({ chosen: found });
      },
    });
    const note = h("p", { class: "nsc-remark" });
    const choose = (words) => {
      field.value = words;
      field.dispatchEvent(new Event("input"));
    };
    const presets = ["All", "Median", "Top 1", ...(facts.n >= 8 ? ["Top 4"] : [])].map((words) => wordButton(words, () => choose(words.toLowerCase())));
    const node = h(
      "section",
      { class: "nsc-card" },
      h("h2", {}, "Chosen ranks"),
      field,
      note,
      ...(facts.is_selection ? [] : [h("div", { class: "nsc-row" }, ...presets)]),
    );
    const rankOf = new Map(facts.ranks);
    const show = () => {
      if (document.activeElement === field) return;
      const named = state.chosen === null ? "all" : state.chosen.map((wire) => rankOf.get(wire)).sort((a, b) => a - b).join(", ");
      const same = wiresOf(field.value, facts);
      const isSame = same === state.chosen || (same && state.chosen && same.join() === state.chosen.join());
      if (!isSame || field.value === "") field.value = named;
    };
    return { node, show };
  }

  function makePaints() {
    const paint = h(
      "select",
      { "aria-label": "Colour of comparators", onchange: () => { pause(); update({ paint: paint.value, step: null }); } },
      h("option", { value: "work" }, "what they do"),
      ...(facts.cut ? [h("option", { value: "codelets" }, "codelets"), h("option", { value: "cone" }, "a light cone of P")] : []),
    );
    const columns = facts.cut?.columns ?? 1;
    const block = h(
      "select",
      { "aria-label": "Columns of P", onchange: () => update({ block: Number(block.value) }) },
      ...[...Array(Math.ceil(facts.n / columns)).keys()].map((index) => {
        const [first, last] = [index * columns, Math.min(facts.n, (index + 1) * columns) - 1];
        return h("option", { value: index }, first === last ? `column ${first}` : `columns ${first} to ${last}`);
      }),
    );
    const blockField = h("label", { class: "nsc-field" }, h("span", { class: "nsc-label" }, "Of"), block);
    const note = h("p", { class: "nsc-remark" });
    const node = h("section", { class: "nsc-card" }, h("h2", {}, "Comparators"), h("label", { class: "nsc-field" }, h("span", { class: "nsc-label" }, "Coloured by"), paint), blockField, note);
    const show = () => {
      paint.value = facts.cut ? state.paint : "work";
      block.value = String(state.block);
      blockField.hidden = state.paint !== "cone";
      const words = {
        work: "",
        codelets: "A codelet loads its wires once and runs all of its comparators. Steps go through the codelets in running order.",
        cone: facts.cut?.reached
          ? "A block of columns of P begins as these inputs alone. A kernel skips the codelets that it does not reach."
          : "A column of P begins as this input alone. A kernel skips the comparators that it does not reach.",
      };
      note.textContent = words[state.paint];
      note.hidden = note.textContent === "";
    };
    return { node, show };
  }

  function makeSoft() {
    const sigmoid = h(
      "select",
      { "aria-label": "Relaxation", onchange: () => update({ sigmoid: sigmoid.value }) },
      ...facts.sigmoids.map(({ name, source }) => h("option", { value: name, title: source }, name)),
    );
    const steepness = makeSlider("Steepness", { least: 0.1, most: 1000, isLogarithmic: true, choose: (value) => update({ steepness: Math.min(MOST_STEEPNESS, Math.max(LEAST_STEEPNESS, value)) }) });
    const lambda = makeSlider("ART λ", { least: 0, most: MOST_LAMBDA, isLogarithmic: false, choose: (value) => update({ lambda: value }) });
    const shown = makeChoice("Wires show", [["values", "Values"], ["gradient", "Gradient"]], (value) => update({ show: value }));
    const of = h(
      "select",
      { "aria-label": "Gradient of", onchange: () => update({ of: of.value }) },
      ...[...Array(facts.n).keys()].map((wire) => h("option", { value: `y${wire}` }, `output ${wire}`)),
      h("option", { value: "loss" }, "cross entropy"),
    );
    const entry = h("option", { value: "" }, "");
    const loss = h("p", { class: "nsc-remark" });
    const reset = wordButton("Defaults", () => update({ sigmoid: facts.start.sigmoid, lambda: facts.start.art_lambda, steepness: facts.start.default_steepness }));
    const node = h(
      "section",
      { class: "nsc-card" },
      h("div", { class: "nsc-card-head" }, h("h2", {}, "Relaxation"), reset),
      h("label", { class: "nsc-field" }, h("span", { class: "nsc-label" }, "Sigmoid"), sigmoid),
      steepness.node,
      lambda.node,
      h("div", { class: "nsc-field" }, h("span", { class: "nsc-label" }, "Wires show"), shown.node),
      h("label", { class: "nsc-field" }, h("span", { class: "nsc-label" }, "Gradient of"), of),
      loss,
    );
    const ten = [...Array(9).keys()].map((place) => heat(Math.sqrt(place / 8)));
    const most = h("span", {}, "1");
    const scale = h("span", { class: "nsc-scale" }, "0", h("i", { style: `background:linear-gradient(90deg,${ten.join(",")})` }), most);
    const show = () => {
      node.hidden = state.mode !== "soft";
      if (node.hidden) return;
      sigmoid.value = state.sigmoid;
      steepness.show(state.steepness);
      lambda.show(state.lambda);
      shown.show(state.show);
      const { row, column } = targetOf(state.of);
      if (column >= 0) {
        entry.value = state.of;
        entry.textContent = `P, row ${row}, column ${column}`;
        of.append(entry);
      } else entry.remove();
      of.value = state.of;
      loss.textContent = runs.loss === undefined ? "" : `Cross entropy: ${short(runs.loss)}`;
      loss.hidden = runs.loss === undefined;
      most.textContent = short(runs.P.reduce((largest, share) => Math.max(largest, share), 0));
    };
    return { node, show, legend: scale };
  }

  function makeKeys() {
    const rows = [
      ["← →", "step back, step"], ["Home End", "to the inputs, to the outputs"], ["Space", "play, pause"],
      ["1 2 3", "exact, 0-1, soft"], ["+ − 0", "larger, smaller, fit"], ["Esc", "follow no item"],
      ["Tab, ↑ ↓", "to the inputs and outputs, from wire to wire"], ["← → on an input", "change it; with Shift ten times as much"],
      ["Enter on an input", "type it; a double click too"], ["Drag an input", "change it"], ["Click an input or a wire", "follow its item"],
      ["Click an output", "in soft mode: show its gradient; else follow its item"], ["Shift and click an output", "choose or leave out its rank"],
      ["Drag, Ctrl and wheel", "pan, zoom"],
    ];
    const list = h("dl", {}, ...rows.flatMap(([key, words]) => [h("dt", {}, key), h("dd", {}, words)]));
    const dialog = h("dialog", { class: "nsc-keys", "aria-label": "Keyboard and mouse" }, h("h2", {}, "Keyboard and mouse"), list, h("form", { method: "dialog" }, h("button", { class: "nsc-small" }, "Close")));
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    return dialog;
  }

  // Events.

  function diagramEvents() {
    const set = (wire, value) => update({ x: state.x.map((old, index) => (index === wire ? value : old)) });
    const flip = (wire) => update({ bits: state.bits.map((bit, index) => (index === wire ? 1 - bit : bit)) });
    const follow = (wire) => update({ follow: state.follow === wire ? -1 : wire });
    const unit = () => {
      const span = Math.max(...state.x) - Math.min(...state.x) || 1;
      return 10 ** Math.floor(Math.log10(span / 20));
    };
    const rounded = (value, step) => Number((Math.round(value / step) * step).toPrecision(10));
    return {
      valueOf: (wire) => (state.mode === "bits" ? state.bits : state.x)[wire],
      setInput: (wire, value) => (state.mode === "bits" ? Number(value === 1) !== state.bits[wire] && flip(wire) : set(wire, value)),
      dragInput: (wire, from, pixels) => {
        if (state.mode === "bits") return;
        const step = unit.kept ??= unit();
        set(wire, rounded(from + Math.round(pixels / 4) * step, step));
        clearTimeout(unit.timer);
        unit.timer = setTimeout(() => (unit.kept = undefined), 600);
      },
      nudgeInput: (wire, count) => {
        if (state.mode === "bits") return flip(wire);
        const step = unit();
        return set(wire, rounded(state.x[wire] + count * step, step));
      },
      clickInput: (wire) => (state.mode === "bits" ? flip(wire) : follow(wire)),
      pick: (wire, isChoosing) => {
        if (isChoosing) return choose(wire);
        if (state.mode === "soft") return update({ of: `y${wire}` });
        return follow(runs.exact.items[net.outputs[wire]]);
      },
      followAt: (segment) => follow(runs.exact.items[segment]),
      describe: (index) => tooltipOf(net, facts, runs, index, neededOf(net, state.chosen)[index]),
    };
  }

  function choose(wire) {
    const known = facts.ranks.map(([carrier]) => carrier);
    if (!known.includes(wire)) return;
    const chosen = new Set(state.chosen ?? []);
    if (!chosen.delete(wire)) chosen.add(wire);
    const all = chosen.size === 0 || chosen.size === known.length;
    update({ chosen: all && !facts.is_selection ? null : chosen.size ? [...chosen].sort((a, b) => a - b) : state.chosen });
  }

  function showFailure() {
    update({ tab: "explore", mode: "bits", bits: [...facts.proof.failure.vector], step: null, mended: false });
  }

  function moveTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (TABS.indexOf(state.tab) + step + TABS.length) % TABS.length;
    update({ tab: TABS[at] });
    tabs[at].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  function onKey(event) {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "range";
    if (isTyping || event.target.closest?.("dialog, pre, .nsc-scroll") || event.ctrlKey || event.metaKey || event.altKey || state.tab !== "explore") return;
    if (event.target.type === "range" && /^(Arrow|Home|End)/.test(event.key)) return;
    if (event.key === " " && event.target.tagName === "BUTTON") return;
    const actions = {
      ArrowLeft: () => goTo(stepOf() - 1),
      ArrowRight: () => goTo(stepOf() + 1),
      Home: () => goTo(0),
      End: () => goTo(units.length),
      " ": () => (timer ? pause() : startPlaying()),
      1: () => update({ mode: "exact" }),
      2: () => update({ mode: "bits" }),
      3: () => update({ mode: "soft" }),
      "+": () => diagram.zoomAt(1.4),
      "=": () => diagram.zoomAt(1.4),
      "-": () => diagram.zoomAt(1 / 1.4),
      0: () => diagram.fit(),
      Escape: () => update({ follow: -1 }),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]();
    event.preventDefault();
  }

  function setTheme(next, isChosen = true) {
    theme = next;
    root.dataset.theme = next;
    if (isChosen) {
      try {
        sessionStorage.setItem("nsc-theme", next);
      } catch {
        // A page in a frame without storage: the theme lasts as long as the page.
      }
    }
    update({});
  }

  render();
  return { state: () => ({ ...state }), update };
}

function chosenTheme() {
  try {
    const theme = sessionStorage.getItem("nsc-theme");
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null;
  }
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
