/** The player: buttons and a slider that step and play through the layers, or the codelets. */
import { h, html, icon, iconButton } from "./elements.mjs";
import { counted } from "./state.mjs";

const SECONDS_A_STEP = 0.7;
const SHORTEST_STEP = 0.08;
const LONGEST_PLAY = 12;

/**
 * @typedef {object} Position How far the network has run.
 * @property {number} step Parts that have run.
 * @property {number} count Parts of the network.
 * @property {string} noun What a part is.
 */

/**
 * Return a position in words. It lies between two layers, so it is a count; layers themselves count from 0.
 * @param {Position} position
 */
export const positionWords = ({ step, count, noun }) => `after ${step} of ${counted(count, noun)}`;

/**
 * Make the player.
 * @param {(step: number | null) => void} setStep Takes the parts that shall have run; null: all.
 * @param {(position: Position) => void} tell Is told of each step that a person takes.
 */
export function makePlayer(setStep, tell) {
  /** @type {Position} */ let position = { step: 0, count: 0, noun: "layer" };
  let timer = 0;
  const play = iconButton("play", "Play", () => toggle());
  const range = h("input", {
    type: "range",
    min: 0,
    step: 1,
    class: "nsc-step",
    oninput: () => goTo(Number(range.value)),
  });
  const label = h("output", { class: "nsc-where" });
  const node = html`<div class="nsc-transport" role="group" aria-label="Steps">
    ${iconButton("first", "To the inputs", () => goTo(0))}
    ${iconButton("back", "Step back", () => move(-1))}
    ${play}
    ${iconButton("next", "Step", () => move(1))}
    ${iconButton("end", "To the outputs", () => goTo(position.count))}
    ${[range, label]}
  </div>`;

  function set(step) {
    position = { ...position, step: Math.min(position.count, Math.max(0, step)) };
    setStep(position.step === position.count ? null : position.step);
    show(position);
  }

  function goTo(step) {
    pause();
    set(step);
    tell(position);
  }

  const move = (count) => goTo(position.step + count);

  function toggle() {
    if (timer) return pause();
    if (position.step >= position.count) set(0);
    const seconds = Math.min(SECONDS_A_STEP, LONGEST_PLAY / Math.max(1, position.count));
    timer = setInterval(
      () => {
        if (position.step + 1 >= position.count) pause();
        set(position.step + 1);
      },
      Math.max(SHORTEST_STEP, seconds) * 1000,
    );
    show(position);
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    show(position);
  }

  /** @param {Position} next */
  function show(next) {
    position = next;
    const { step, count, noun } = position;
    range.max = String(count);
    range.value = String(step);
    range.setAttribute("aria-label", `Parts that have run: ${noun}s`);
    label.textContent = positionWords(position);
    range.setAttribute("aria-valuetext", label.textContent);
    label.style.minWidth = `${positionWords({ ...position, step: count }).length}ch`; // steps move nothing
    const name = timer ? "Pause" : "Play";
    if (play.title === name) return;
    play.replaceChildren(icon(name.toLowerCase()));
    play.setAttribute("aria-label", name);
    play.title = name;
  }

  return { node, show, goTo, move, toggle, pause, toEnd: () => goTo(position.count) };
}
