/** Views: the pages beside the diagram: formats, generated source, bounds, and the proof. */
import { capital, h, html, makeChoice, makeTerm, wordButton } from "./elements.mjs";

/**
 * Make a list of texts of which one is shown, to copy or to save.
 * @param {object[]} texts Records with name, file, note and text.
 * @param {string} empty What is said if there are none.
 * @param {(name: string) => void} choose
 */
export function makeTexts(texts, empty, choose) {
  if (!texts.length) return { node: html`<div class="nsc-card"><p>${empty}</p></div>`, show: () => {} };
  const names = texts.map(({ name }) => [name, name]);
  const choice = makeChoice("Texts", names, choose, "nsc-names");
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
  const node = html`<div class="nsc-card nsc-texts">
    ${choice.node}
    <div class="nsc-text">
      <div class="nsc-text-head">${[file, copy, save]}</div>
      ${[note, body]}
    </div>
  </div>`;
  const show = (name) => {
    choice.show(name);
    const next = texts.find((text) => text.name === name);
    if (next === current) return;
    current = next;
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

/** Copy a text; return whether the browser has a clipboard for this page. */
export const copied = (text) =>
  Promise.resolve(navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
    () => true,
    () => false,
  );

/** Return the size and the depth of the network beside what is known of its number of wires. */
export function boundsView({ n, bounds, layers, is_selection, proof }) {
  const isCompared = !is_selection && proof.verdict !== "refuted";
  const measure = (label, own, best, least) => {
    const most = Math.max(own, best, least, 1);
    const row = (name, value, kind) => {
      const node = html`<div class="nsc-bar">
        <span class="nsc-bar-name">${name}</span>
        <span class="nsc-bar-track"><span></span></span>
        <span class="nsc-bar-value">${value.toLocaleString("en")}</span>
      </div>`;
      node.classList.add(kind);
      node.querySelector(".nsc-bar-track span").style.width = `${(100 * value) / most}%`;
      return node;
    };
    const gap = own - best;
    let verdict = `${gap.toLocaleString("en")} more than the best known, ${Math.round((100 * gap) / Math.max(1, best))} %.`;
    if (gap === 0) verdict = best === least ? "No sorter has fewer." : "As few as any sorter that nsc knows.";
    return html`<section class="nsc-card">
      <h2>${label}</h2>
      ${row("this network", own, "own")}
      ${row("best known sorter", best, "best")}
      ${row("lower bound of sorters", least, "least")}
      ${isCompared && gap >= 0 ? html`<p class="nsc-remark">${verdict}</p>` : null}
    </section>`;
  };
  const number = (value) => (value === null ? "–" : value.toLocaleString("en"));
  const rows = bounds.families.map(({ name, summary, size, depth, is_own }) => {
    const cells = [name, number(size), number(depth), summary].map((words) => h("td", {}, words));
    return h("tr", { class: is_own ? "own" : null }, ...cells);
  });
  const note = "The bounds hold for networks that sort all values; this one selects.";
  return html`<div class="nsc-bounds">
    ${measure("Size, in comparators", layers.flat().length, bounds.size, bounds.least_size)}
    ${measure("Depth, in layers", layers.length, bounds.depth, bounds.least_depth)}
    <section class="nsc-card nsc-families">
      <h2>${`Families on ${n} ${n === 1 ? "wire" : "wires"}`}</h2>
      <div class="nsc-scroll" tabindex="0">
        <table><thead><tr><th>family</th><th>size</th><th>depth</th><th></th></tr></thead><tbody>${rows}</tbody></table>
      </div>
      ${is_selection ? html`<p class="nsc-remark">${note}</p>` : null}
      <p class="nsc-remark">${bounds.source}</p>
    </section>
  </div>`;
}

/**
 * Return the proof in words, or where the network fails.
 * @param {object} facts
 * @param {() => void} showFailure Shows the counterexample in the diagram.
 */
export function proofView({ proof, cut, digests }, showFailure) {
  const row = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
  const mono = (words) => h("code", {}, words);
  const failing = ({ vector, values, wires, layer, mend }) => [
    row("0-1 input", mono(vector.join(" "))),
    row("permutation", mono(values.join(" "))),
    row(
      "wrong wires",
      mono(wires.join(", ")),
      layer === null ? ", which no comparator touches" : `, last touched in layer ${layer}`,
    ),
    row("mend", mend ? mend.words : "no single comparator that mends the network was found"),
  ];
  const rows = [
    row("method", proof.method),
    row("argument", proof.detail),
    ...(proof.failure ? failing(proof.failure) : []),
    ...digests.map(({ name, value }) => row(name, mono(value))),
  ];
  const kernels = ({ figures, terms }) => html`<section class="nsc-card">
    <h2>How kernels run it</h2>
    <ul>${figures.map((figure) => h("li", {}, figure))}</ul>
    ${Object.entries(terms).map(([word, meaning]) => makeTerm(word, meaning))}
  </section>`;
  return html`<div class="nsc-proof">
    <section class="nsc-card">
      <h2>${`${capital(proof.claim)}: ${proof.verdict}`}</h2>
      <dl>${rows.flat()}</dl>
      ${proof.failure ? wordButton("Show in the diagram", showFailure) : null}
      <p class="nsc-remark">${EXPLANATIONS[proof.verdict]}</p>
    </section>
    ${cut ? kernels(cut) : null}
    <section class="nsc-card nsc-json">
      <h2>The proof as data</h2>
      <pre tabindex="0" aria-label="The proof as JSON">${proof.json}</pre>
    </section>
  </div>`;
}

const EXPLANATIONS = {
  proved: "By the 0-1 principle, a network that treats all inputs of zeros and ones right treats all inputs right.",
  refuted: "One input that comes out wrong refutes a network. nsc writes no code for it.",
  unproved:
    "All inputs that were tried came out right, and no exact method settled the others within its limits.",
};
