/** Views: the pages beside the diagram: formats, generated source, bounds, and the proof. */
import { capital, h, makeTerm, wordButton } from "./elements.mjs";

/**
 * Make a list of texts of which one is shown, to copy or to save.
 * @param {object[]} texts Records with name, file, note and text.
 * @param {string} empty What is said if there are none.
 * @param {(name: string) => void} choose
 */
export function makeTexts(texts, empty, choose) {
  if (!texts.length)
    return { node: h("div", { class: "nsc-card nsc-prose" }, h("p", {}, empty)), show: () => {} };
  const buttons = texts.map(({ name }) => h("button", { type: "button", onclick: () => choose(name) }, name));
  const body = h("pre", { tabindex: 0 });
  const file = h("span", { class: "nsc-file" });
  const note = h("p", { class: "nsc-remark" });
  let current = null;
  const copy = wordButton("Copy", async () => {
    const isCopied = await copied(current.text);
    copy.textContent = isCopied ? "Copied" : "Not copied";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  const save = wordButton("Save", () => {
    const url = URL.createObjectURL(new Blob([current.text], { type: "text/plain" }));
    h("a", { href: url, download: current.file }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });
  const node = h(
    "div",
    { class: "nsc-card nsc-texts" },
    h("nav", { "aria-label": "Texts" }, ...buttons),
    h("div", { class: "nsc-text" }, h("div", { class: "nsc-text-head" }, file, copy, save), note, body),
  );
  const show = (name) => {
    const next = texts.find((text) => text.name === name) ?? texts[0];
    if (next === current) return;
    current = next;
    buttons.forEach((button, index) => button.setAttribute("aria-current", String(texts[index] === current)));
    buttons[texts.indexOf(current)].scrollIntoView({ block: "nearest", inline: "nearest" });
    const lines =
      current.text === null ? "" : `, ${(current.text.match(/\n/g) ?? []).length.toLocaleString("en")} lines`;
    file.textContent = `${current.file}${lines}`;
    note.textContent = current.note;
    note.hidden = current.note === "";
    body.textContent = current.text ?? "";
    body.hidden = copy.disabled = save.disabled = current.text === null;
    body.setAttribute("aria-label", `${current.name}: ${current.file}`);
    body.scrollTop = 0;
  };
  return { node, show };
}

/** Copy a text; where the browser has no clipboard for this page, by a selection. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement;
    const area = h("textarea", { class: "nsc-hidden" });
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return isCopied;
  }
}

/** Return the size and the depth of the network beside what is known of its number of wires. */
export function boundsView({ n, bounds, layers, is_selection, proof }) {
  const size = layers.reduce((sum, layer) => sum + layer.length, 0);
  const measures = [
    ["Size, in comparators", size, bounds.size, bounds.least_size],
    ["Depth, in layers", layers.length, bounds.depth, bounds.least_depth],
  ];
  const scales = measures.map(([label, own, best, least]) => {
    const most = Math.max(own, best, least, 1);
    const row = (name, value, kind) =>
      h(
        "div",
        { class: `nsc-bar ${kind}` },
        h("span", { class: "nsc-bar-name" }, name),
        h("span", { class: "nsc-bar-track" }, h("span", { style: `width:${(100 * value) / most}%` })),
        h("span", { class: "nsc-bar-value" }, value.toLocaleString("en")),
      );
    const gap = own - best;
    const verdict =
      is_selection || proof.verdict === "refuted" || own < best
        ? ""
        : gap === 0
          ? best === least
            ? "No sorter has fewer."
            : "As few as any sorter that nsc knows."
          : `${gap.toLocaleString("en")} more than the best known, ${Math.round((100 * gap) / Math.max(1, best))} %.`;
    return h(
      "section",
      { class: "nsc-card" },
      h("h2", {}, label),
      row("this network", own, "own"),
      row("best known sorter", best, "best"),
      row("lower bound of sorters", least, "least"),
      verdict ? h("p", { class: "nsc-remark" }, verdict) : null,
    );
  });
  const cells = (tag, values) => h("tr", {}, ...values.map((value) => h(tag, {}, value)));
  const number = (value) => (value === null ? "–" : value.toLocaleString("en"));
  const rows = bounds.families.map(({ name, summary, size: total, depth, is_own }) => {
    const row = cells("td", [name, number(total), number(depth), summary]);
    if (is_own) row.className = "own";
    return row;
  });
  return h(
    "div",
    { class: "nsc-bounds" },
    ...scales,
    h(
      "section",
      { class: "nsc-card nsc-families" },
      h("h2", {}, `Families on ${n} ${n === 1 ? "wire" : "wires"}`),
      h(
        "div",
        { class: "nsc-scroll", tabindex: 0 },
        h("table", {}, h("thead", {}, cells("th", ["family", "size", "depth", ""])), h("tbody", {}, ...rows)),
      ),
      is_selection
        ? h(
            "p",
            { class: "nsc-remark" },
            "The bounds hold for networks that sort all values; this one selects.",
          )
        : null,
      h("p", { class: "nsc-remark" }, bounds.source),
    ),
  );
}

/**
 * Return the proof in words, or where the network fails.
 * @param {object} facts
 * @param {() => void} showFailure Shows the counterexample in the diagram.
 */
export function proofView(facts, showFailure) {
  const { proof, cut, digests } = facts;
  const row = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
  const mono = (words) => h("code", {}, words);
  const failing = [];
  if (proof.failure) {
    const { vector, values, wires, layer, mend } = proof.failure;
    failing.push(
      ...row("0-1 input", mono(vector.join(" "))),
      ...row("permutation", mono(values.join(" "))),
      ...row(
        "wrong wires",
        mono(wires.join(", ")),
        layer === null ? ", which no comparator touches" : `, last touched in layer ${layer}`,
      ),
      ...row("mend", mend ? mend.words : "no single comparator that mends the network was found"),
    );
  }
  return h(
    "div",
    { class: "nsc-proof" },
    h(
      "section",
      { class: "nsc-card" },
      h("h2", {}, `${capital(proof.claim)}: ${proof.verdict}`),
      h(
        "dl",
        {},
        ...row("method", proof.method),
        ...row("argument", proof.detail),
        ...failing,
        ...digests.flatMap(({ name, value }) => row(name, mono(value))),
      ),
      proof.failure ? wordButton("Show in the diagram", showFailure) : null,
      h("p", { class: "nsc-remark" }, explanation(proof)),
    ),
    cut
      ? h(
          "section",
          { class: "nsc-card" },
          h("h2", {}, "How kernels run it"),
          h("ul", {}, ...cut.figures.map((figure) => h("li", {}, figure))),
          ...Object.entries(cut.terms).map(([word, meaning]) => makeTerm(word, meaning)),
        )
      : null,
    h(
      "section",
      { class: "nsc-card nsc-json" },
      h("h2", {}, "The proof as data"),
      h("pre", { tabindex: 0, "aria-label": "The proof as JSON" }, proof.json),
    ),
  );
}

function explanation(proof) {
  if (proof.verdict === "proved") {
    return "By the 0-1 principle, a network that treats all inputs of zeros and ones right treats all inputs right.";
  }
  if (proof.verdict === "refuted")
    return "One input that comes out wrong refutes a network. nsc writes no code for it.";
  return "All inputs that were tried came out right, and no exact method settled the others within its limits.";
}
