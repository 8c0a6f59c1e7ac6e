/** Gestures: the pointer and the keyboard on a diagram, and the field to type a value in. */
import { clamp } from "./layout.mjs";

const PIXELS_A_STEP = 4;
// How far a comparator may lie from what points at it: a finger is wider than a mouse.
const NEAR = { mouse: 7, pen: 7, touch: 10 };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Join the pointer and the keyboard to a diagram.
 * @param {object} diagram Its elements, what it does and where its parts lie; see makeDiagram.
 */
export function listen(diagram) {
  const { stage, host, on, placeOf, segmentAt, comparatorAt, tell, zoomAt, panBy, rove, tip } = diagram;
  const pointAt = (event) => {
    const at = placeOf(event);
    const found = comparatorAt(at, NEAR[event.pointerType] ?? NEAR.mouse);
    tell(found, at);
    return found;
  };
  const pointers = new Map();
  let drag = null;
  const wireOf = (event, selector) => {
    const chip = event.target.closest?.(selector);
    return chip && stage.contains(chip) ? Number(chip.dataset.wire) : -1;
  };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pointers.set(event.pointerId, event);
    tell(-1);
    const wire = wireOf(event, ".nsc-inputs .nsc-chip");
    drag = {
      x: event.clientX,
      y: event.clientY,
      wire,
      output: wireOf(event, ".nsc-outputs .nsc-chip"),
      moved: false,
    };
    if (wire >= 0) Object.assign(drag, { value: on.valueOf(wire), unit: on.unit() });
  });
  stage.addEventListener("pointermove", (event) => {
    if (!drag || !pointers.has(event.pointerId)) return pointAt(event);
    const before = pointers.get(event.pointerId);
    const [x, y] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (pointers.size === 2) {
      const [other] = [...pointers].find(([id]) => id !== event.pointerId).slice(1);
      const far = (a, b) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1;
      const middle = placeOf({
        clientX: (event.clientX + other.clientX) / 2,
        clientY: (event.clientY + other.clientY) / 2,
      });
      zoomAt(far(event, other) / far(before, other), middle.x, middle.y);
      drag.moved = true;
    } else if (drag.moved || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4) {
      // Not before it moves: a captured pointer would take clicks away from the inputs.
      if (!drag.moved) stage.setPointerCapture(event.pointerId);
      drag.moved = true;
      tip.hide();
      if (drag.wire >= 0) {
        const steps = Math.round((event.clientX - drag.x) / PIXELS_A_STEP);
        on.moveInput(drag.wire, drag.value + steps * drag.unit, drag.unit);
      } else panBy(x, y);
    }
    pointers.set(event.pointerId, event);
  });
  const end = (event) => {
    const isClick = drag && !drag.moved && event.type === "pointerup";
    pointers.delete(event.pointerId);
    if (isClick) {
      if (drag.wire >= 0) on.clickInput(drag.wire);
      else if (drag.output >= 0) on.pick(drag.output, event.shiftKey);
      // Nothing hovers over a touch screen: there a touch tells what a mouse does that points.
      else if (event.pointerType !== "touch" || pointAt(event) < 0) {
        const segment = segmentAt(placeOf(event));
        if (segment >= 0) on.followAt(segment);
      }
    }
    if (pointers.size === 0) drag = null;
  };
  stage.addEventListener("pointerup", end);
  stage.addEventListener("pointercancel", end);
  stage.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && tell(-1));
  stage.addEventListener("dblclick", (event) => {
    const wire = wireOf(event, ".nsc-inputs .nsc-chip");
    if (wire >= 0) edit(diagram, wire);
  });
  stage.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { x, y } = placeOf(event);
      zoomAt(Math.exp(-event.deltaY * 0.004), x, y);
    },
    { passive: false },
  );
  // Not on the stage: browsers let the tab key reach an SVG element that listens for the focus.
  host.addEventListener("focusin", (event) => {
    const wire = wireOf(event, ".nsc-chip");
    if (wire >= 0) rove(wire);
    if (isComparator(event)) tell(diagram.currentComparator());
  });
  host.addEventListener("focusout", (event) => isComparator(event) && tell(-1));
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isComparator(event) && ARROWS[event.key]) {
      const next = diagram.comparatorBeside(diagram.currentComparator(), ARROWS[event.key]);
      if (next >= 0) diagram.focusComparator(next);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const wire = wireOf(event, ".nsc-chip");
    if (wire < 0) return;
    const isInput = event.target.closest(".nsc-inputs") !== null;
    const list = isInput ? diagram.chipsOf().inputs : diagram.chipsOf().outputs;
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      list[clamp(wire + (event.key === "ArrowUp" ? -1 : 1), 0, list.length - 1)].node.focus();
    } else if (isInput && steps[event.key]) {
      on.nudgeInput(wire, steps[event.key] * (event.shiftKey ? 10 : 1), on.unit());
    } else if (isInput && event.key === "Enter") edit(diagram, wire);
    else if (isInput && event.key === " ") on.clickInput(wire);
    else if (!isInput && (event.key === "Enter" || event.key === " ")) on.pick(wire, event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

const isComparator = (event) => event.target.matches?.(".nsc-comparators path") ?? false;

/** Put a field in the place of an input, to type its value. */
function edit({ host, boxOf, on, chipsOf, tip }, wire) {
  const field = document.createElement("input");
  const { left, top, width, height } = boxOf(wire);
  field.className = "nsc-edit";
  field.setAttribute("aria-label", `Value of input ${wire}`);
  field.inputMode = "decimal";
  field.value = String(on.valueOf(wire));
  const high = Math.max(24, height);
  Object.assign(field.style, {
    left: `${left - 4}px`,
    top: `${top - (high - height) / 2}px`,
    width: `${width + 8}px`,
    height: `${high}px`,
  });
  let isOpen = true;
  const close = (isKept) => {
    if (!isOpen) return;
    isOpen = false;
    field.remove();
    const fault = isKept ? on.typeInput(wire, field.value) : "";
    if (fault) tip.show(`${fault}: ${on.valueOf(wire)} stays`, left, top + height / 2);
    else tip.hide();
  };
  field.addEventListener("blur", () => close(true));
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key !== "Enter" && event.key !== "Escape") return;
    close(event.key === "Enter");
    chipsOf().inputs[wire].node.focus();
    event.preventDefault();
  });
  host.append(field);
  field.select();
}
