/**
 * Colours: viridis for amounts, blue to orange for signs, and six colours that all eyes can tell apart.
 * A theme is "light" or "dark"; on a light page the lightest colours of viridis are left out, on a dark
 * one the darkest.
 */

/** Viridis of matplotlib, at nine places. */
const VIRIDIS = "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725".split(" ").map(channelsOf);
const RANGE = { light: [0, 0.84], dark: [0.24, 1] };
/** Below 0, at 0 and above. */
const SIGNED = {
  light: ["1558b0", "cdd1d6", "c45400"].map(channelsOf),
  dark: ["6eaaff", "3e4650", "ff9e42"].map(channelsOf),
};
/** The colours of Okabe and Ito without black, and without yellow, which white swallows. */
const KINDS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];

/** Return red, green and blue of six hexadecimal digits. */
function channelsOf(hex) {
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

const mixed = (a, b, share) => a.map((channel, index) => Math.round(channel + (b[index] - channel) * share));
const css = ([red, green, blue]) => `rgb(${red},${green},${blue})`;

/** Return red, green and blue of an amount in [0, 1], of the whole of viridis. */
export function heatChannels(share) {
  const place = Math.min(1, Math.max(0, share || 0)) * (VIRIDIS.length - 1);
  const below = Math.min(VIRIDIS.length - 2, Math.floor(place));
  return mixed(VIRIDIS[below], VIRIDIS[below + 1], place - below);
}

/** Return the colour of an amount in [0, 1], of the whole of viridis. */
export const heat = (share) => css(heatChannels(share));

/** Return the colour of an amount in [0, 1] for a line on the page. */
export function amount(share, theme) {
  const [from, to] = RANGE[theme];
  return heat(from + (to - from) * Math.min(1, Math.max(0, share || 0)));
}

/** Return the colour of a number in [-1, 1]: blue below 0, orange above. */
export function signed(share, theme) {
  const [below, zero, above] = SIGNED[theme];
  const size = Math.sqrt(Math.min(1, Math.abs(share || 0))); // small numbers keep a visible colour
  return css(mixed(zero, share < 0 ? below : above, size));
}

/** Return the colour of the kind of some number. */
export const kind = (number) => KINDS[number % KINDS.length];

/** Return black or white, whichever stands out more on a colour of `heat` or `signed`: at least 4.5 : 1. */
export function inkOn(colour) {
  const [red, green, blue] = colour.match(/\d+/g).map((channel) => linear(channel / 255));
  // Black and white are equally far from this luminance, as WCAG 2 counts.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** Return the light of a channel of sRGB in [0, 1]. */
const linear = (channel) => (channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4);
