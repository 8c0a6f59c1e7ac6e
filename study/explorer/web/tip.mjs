/** Tips: words beside a place of an element, for what is pointed at, touched or has the focus. */
import { h } from "./elements.mjs";
import { clamp } from "./layout.mjs";

/**
 * Make the tip of an element, which must be positioned.
 * @param {HTMLElement} host
 */
export function makeTip(host) {
  const node = h("div", { class: "nsc-tip", hidden: true });
  host.append(node);
  const hide = () => {
    node.hidden = true;
  };

  /** Show words below a place of the host, or above it where there is more room. */
  function show(words, x, y) {
    node.textContent = words;
    node.hidden = false;
    const [width, height] = [node.offsetWidth, node.offsetHeight];
    const isAbove = y + 16 + height > host.clientHeight && y - 10 - height >= 0;
    node.style.left = `${clamp(x + 14, 4, Math.max(4, host.clientWidth - width - 4))}px`;
    node.style.top = `${isAbove ? y - 10 - height : y + 16}px`;
  }
  return { show, hide };
}
