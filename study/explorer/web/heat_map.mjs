/**
 * The heat map of P: rows are outputs, columns are inputs. Beside each row stand its sum and the soft value,
 * below each column its sum, the soft rank and the gradient.
 */
import { amount, heat, heatChannels, inkOn, signed } from "./colours.mjs";
import { makeTip } from "./elements.mjs";
import { targetOf } from "./state.mjs";

const STRIP_GAP = 10;
const MOST_CELL = 50;
const MOST_SIDE = 720;

/**
 * Make a heat map in an element.
 * @param {HTMLElement} host
 * @param {{pick: (row: number, column: number) => void, say: (text: string) => void}} on
 */
export function makeHeatMap(host, on) {
  const canvas = document.createElement("canvas");
  canvas.className = "nsc-heat";
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  host.append(canvas);
  const tip = makeTip(host);
  let matrix;
  let shape = { cell: 1, left: 0, top: 0, strip: 0 };
  let cursor = [0, 0];

  /** Show the P of some runs, and frame what the state chose. */
  function show(net, state, runs, theme) {
    const { n } = net;
    const rowSums = new Array(n).fill(0);
    const columnSums = new Array(n).fill(0);
    runs.P.forEach((share, place) => {
      rowSums[Math.floor(place / n)] += share;
      columnSums[place % n] += share;
    });
    const { row, column } = targetOf(state.of);
    const framed = { row, column: row >= 0 || column >= 0 ? column : state.follow };
    const gradient = [...runs.gradient.slice(0, n)];
    const values = net.outputs.map((segment) => runs.values[segment]);
    matrix = { ...runs, ...framed, n, theme, gradient, values, rowSums, columnSums, largest: Math.max(...runs.P) };
    const width = host.clientWidth || 400;
    const strip = 46;
    const [label, top] = [26, 20];
    const rest = width - label - 2 * strip - STRIP_GAP - 4;
    const cell = Math.max(1, Math.min(MOST_CELL, MOST_SIDE / n, n > 40 ? rest / n : Math.floor(rest / n)));
    const left = label + Math.max(0, (rest - cell * n) / 2);
    shape = { cell, left, top, strip, side: cell * n };
    const line = cell >= 30 ? 22 : 14;
    const height = top + shape.side + STRIP_GAP + 3 * (line + 3) + 2;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, line);
    const [least, most] = [Math.min(...matrix.rowSums), Math.max(...matrix.rowSums)];
    canvas.setAttribute(
      "aria-label",
      `Relaxed permutation matrix, ${n} by ${n}. Row sums ${short(least)} to ${short(most)}, column sums ` +
        `${short(Math.min(...matrix.columnSums))} to ${short(Math.max(...matrix.columnSums))}. Arrow keys read entries.`,
    );
  }

  function draw(context, line) {
    const { n, P, theme, gradient } = matrix;
    const { cell, left, top, strip, side } = shape;
    const style = getComputedStyle(canvas);
    const muted = style.getPropertyValue("--nsc-muted");
    const family = style.fontFamily;
    const gap = cell >= 12 ? 1 : 0;
    context.textBaseline = "middle";
    context.textAlign = "center";
    const write = (words, x, y, colour, size = 11) => {
      context.fillStyle = colour;
      context.font = `${size}px ${family}`;
      context.fillText(words, x, y);
    };
    // Whole pixels: else light lines would run between the cells of a large matrix.
    const box = (x, y, width, height, colour, words = "") => {
      const [fromX, fromY] = [Math.round(x), Math.round(y)];
      context.fillStyle = colour;
      context.fillRect(fromX, fromY, Math.round(x + width) - fromX, Math.round(y + height) - fromY);
      const text = typeof words === "number" ? fitting(words, (width + 2) / 6) : words;
      if (height >= 12 && width >= 20 && 6 * text.length <= width + 2)
        write(text, x + width / 2, y + height / 2 + 0.5, inkOn(colour));
    };
    if (!gap) {
      context.imageSmoothingEnabled = false;
      context.drawImage(picture(matrix), left, top, side, side);
    }
    for (let row = 0; row < (gap ? n : 0); row++) {
      for (let column = 0; column < n; column++) {
        const share = P[row * n + column];
        const words = share < 0.005 ? "" : share.toFixed(2).replace(/^0/, "");
        const colour = heat(Math.sqrt(share / matrix.largest));
        box(left + column * cell, top + row * cell, cell - gap, cell - gap, colour, words);
      }
    }
    const every = Math.ceil((n > 100 ? 26 : n > 10 ? 20 : 13) / cell);
    for (let index = 0; index < n; index += every) {
      write(String(index), left + (index + 0.5) * cell, top - 9, muted, 10.5);
      write(String(index), left - 12, top + (index + 0.5) * cell, muted, 10.5);
    }
    const right = left + side + STRIP_GAP;
    write("sum", right + strip / 2, top - 9, muted, 10.5);
    write("value", right + strip * 1.5, top - 9, muted, 10.5);
    const neutral = theme === "dark" ? "rgb(48,55,64)" : "rgb(232,235,239)";
    for (let row = 0; row < n; row++) {
      const y = top + row * cell;
      const value = matrix.values[row];
      const colour = amount((value - matrix.least) / (matrix.most - matrix.least || 1), theme);
      box(right, y, strip - 3, cell - gap, neutral, matrix.rowSums[row]);
      box(right + strip, y, strip - 3, cell - gap, colour, value);
    }
    const most = Math.max(...gradient.map(Math.abs)) || 1;
    const strips = [
      ["sum", (column) => [neutral, matrix.columnSums[column]]],
      ["rank", (column) => [heat(matrix.ranks[column] / Math.max(1, n - 1)), matrix.ranks[column]]],
      ["gradient", (column) => [signed(gradient[column] / most, theme), gradient[column]]],
    ];
    strips.forEach(([name, lookOf], index) => {
      const y = top + side + STRIP_GAP + index * (line + 3);
      for (let column = 0; column < n; column++)
        box(left + column * cell, y, cell - gap, line, ...lookOf(column));
      context.textAlign = "left";
      write(name, right, y + line / 2, muted, 10.5);
      context.textAlign = "center";
    });
    // Two lines, so that one of them is seen on every colour.
    const frame = (row, column, rows, columns) => {
      for (const [colour, width] of [
        ["#10151b", 4],
        ["#ffffff", 2],
      ]) {
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.strokeRect(left + column * cell - 0.5, top + row * cell - 0.5, columns * cell, rows * cell);
      }
    };
    if (matrix.row >= 0 && matrix.column >= 0) frame(matrix.row, matrix.column, 1, 1);
    else if (matrix.row >= 0) frame(matrix.row, 0, 1, n);
    else if (matrix.column >= 0) frame(0, matrix.column, n, 1);
  }

  const words = (row, column) =>
    `output ${row} takes ${short(matrix.P[row * matrix.n + column])} of input ${column}; rank of the input ` +
    `${short(matrix.ranks[column])}, gradient ${short(matrix.gradient[column])}`;

  function placeOf(event) {
    const box = canvas.getBoundingClientRect();
    const inside = (place) => (place >= 0 && place < matrix.n ? place : -1);
    const column = inside(Math.floor((event.clientX - box.left - shape.left) / shape.cell));
    const row = inside(Math.floor((event.clientY - box.top - shape.top) / shape.cell));
    return { row, column };
  }

  /** Show the entry of a row and a column, in words beside it. */
  function tell(row, column) {
    if (row < 0 || column < 0) return tip.hide();
    const { left, top, cell } = shape;
    const box = canvas.getBoundingClientRect();
    tip.show(words(row, column), box.x + left + (column + 0.5) * cell, box.y + top + (row + 0.5) * cell);
  }

  canvas.addEventListener("pointermove", (event) => {
    const { row, column } = placeOf(event);
    tell(row, column);
  });
  // A finger that is lifted leaves the canvas too: what it touched is still told.
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && tip.hide());
  canvas.addEventListener("blur", () => tip.hide());
  canvas.addEventListener("click", (event) => {
    const { row, column } = placeOf(event);
    if (row >= 0) on.pick(row, column);
    tell(row, column);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter") on.pick(...cursor);
    else if (step) {
      cursor = cursor.map((place, at) => Math.min(matrix.n - 1, Math.max(0, place + step[at])));
      on.say(words(...cursor));
      tell(...cursor);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { show };
}

/** Return P as a picture of a pixel for each entry, which is drawn faster than as many boxes. */
function picture({ n, P, largest }) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = n;
  const image = new ImageData(n, n);
  P.forEach((share, place) => {
    image.data.set(heatChannels(Math.sqrt(share / largest)), 4 * place);
    image.data[4 * place + 3] = 255;
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** Return a number with as many digits as fit in `most` characters; nothing, if it cannot be written in so few. */
function fitting(value, most) {
  const fewer = [2, 1, 0].map((digits) => value.toFixed(digits).replace("-", "−").replace(/^(−?)0\./, "$1."));
  return [short(value), ...fewer].find((text) => text.length <= most) ?? "";
}

/** Return a number in a few characters. */
export function short(value) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100000))
    return value.toExponential(0).replace("-", "−").replace("e−", "e-").replace("e+", "e");
  const text = value.toFixed([10, 100, 1000].filter((most) => size < most).length);
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace("-", "−");
}
