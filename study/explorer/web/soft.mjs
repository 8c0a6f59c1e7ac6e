/**
 * Relaxed runs: values, P and gradients, as nsc's operators compute them, in float64.
 *
 * With d = x[hi] - x[lo] and v = steepness·φ(d), φ(d) = d / (|d| + 1e-10)^λ, a comparator keeps α = f(v) and
 * swaps β = f(-v). Each is computed from its own tail: 1 - α has no digits left where α rounds to 1.
 *
 * @typedef {import("./network.mjs").Net} Net
 *
 * @typedef {object} Relaxation
 * @property {string} sigmoid A key of SIGMOIDS.
 * @property {number} lambda Strength of the activation replacement trick, 0 <= λ < 1.
 * @property {number} steepness
 * @property {string} form One of FORMS. The error-free form has exact values and a 0-1 P, and the gradients of the
 *   relaxed comparators there.
 *
 * @typedef {object} SoftRun
 * @property {Float64Array} values The value on each segment.
 * @property {Float64Array} keep The keep weight of each comparator.
 * @property {Float64Array} swap Its swap weight.
 * @property {{keep: Float64Array, swap: Float64Array}} forward The weights that mix values and P: these, or in the
 *   error-free form zeros and ones.
 * @property {Float64Array} slope dα/dd of each comparator, which is -dβ/dd.
 */

export const ART_EPSILON = 1e-10;
export const FORMS = ["relaxed", "error-free"];
/** In the error-free form the derivative of log p is 1 / max(p, this), or nothing could be learned from a 0. */
const SURROGATE_LEAST = 1e-12;
/** Logarithms in the losses are cut here, where their derivative is 0. */
export const LOWEST_LOG = -80;

/** Of t = |v| >= 0 the smaller weight, the tail f(-t), and the slope f'(t). */
export const SIGMOIDS = Object.freeze({
  logistic: {
    tail: (t) => Math.exp(-t) / (1 + Math.exp(-t)),
    slope: (t) => Math.exp(-t) / (1 + Math.exp(-t)) ** 2,
  },
  gaussian: {
    tail: (t) => 0.5 * erfc(t * Math.SQRT1_2),
    slope: (t) => Math.exp(-0.5 * t * t) / Math.sqrt(2 * Math.PI),
  },
  reciprocal: { tail: (t) => 1 / (2 + t), slope: (t) => 1 / (2 + t) ** 2 },
  cauchy: { tail: (t) => Math.atan2(1, t) / Math.PI, slope: (t) => 1 / (Math.PI * (1 + t * t)) },
  optimal: {
    tail: (t) => (t > 0.25 ? 1 / (16 * t) : 0.5 - t),
    slope: (t) => (t > 0.25 ? 1 / (16 * t * t) : 1),
  },
  hard: { tail: () => 0, slope: () => 0 },
});

/**
 * Return 1 - erf(z) of z >= 0, to full relative precision: the series of erf near 0, else the continued
 * fraction of erfc from its end, which has converged after 60 terms.
 * @param {number} z
 */
export function erfc(z) {
  if (z < 2) {
    let [term, sum] = [z, z];
    for (let k = 1; Math.abs(term) > 1e-18 * sum; k++) {
      term *= (-z * z) / k;
      sum += term / (2 * k + 1);
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = z;
  for (let k = 60; k >= 1; k--) fraction = z + k / 2 / fraction;
  return Math.exp(-z * z) / (Math.sqrt(Math.PI) * fraction);
}

/** Return weight·x, where 0 times infinity counts as 0. */
const weighted = (weight, x) => (weight === 0 && Math.abs(x) === Infinity ? 0 : weight * x);

/**
 * Run the network relaxed.
 * @param {Net} net
 * @param {ArrayLike<number>} x
 * @param {Relaxation} relaxation
 * @returns {SoftRun}
 */
export function runSoftly(net, x, relaxation) {
  const size = net.comparators.length;
  const values = new Float64Array(net.segments.length);
  const [keep, swap, slope] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
  const isErrorFree = relaxation.form === "error-free";
  const forward = isErrorFree ? { keep: new Float64Array(size), swap: new Float64Array(size) } : { keep, swap };
  values.set(x);
  net.comparators.forEach((c, index) => {
    const [a, b] = [values[c.inLo], values[c.inHi]];
    const weights = c.idle ? { keep: 1, swap: 0, slope: 0 } : weightsOf(a, b, relaxation);
    ({ keep: keep[index], swap: swap[index], slope: slope[index] } = weights);
    if (isErrorFree) [forward.keep[index], forward.swap[index]] = c.idle || a <= b ? [1, 0] : [0, 1];
    values[c.outLo] = weighted(forward.keep[index], a) + weighted(forward.swap[index], b);
    values[c.outHi] = weighted(forward.keep[index], b) + weighted(forward.swap[index], a);
  });
  return { values, keep, swap, forward, slope };
}

/** Return a comparator's weights for the values a on lo and b on hi. */
function weightsOf(a, b, { sigmoid, lambda, steepness }) {
  const d = b - a;
  // A comparator with an infinite difference is exact; equal infinities mix half and half.
  if (a === b && Math.abs(a) === Infinity) return { keep: 0.5, swap: 0.5, slope: 0 };
  if (Math.abs(d) === Infinity) return { keep: Number(d > 0), swap: Number(d < 0), slope: 0 };
  const size = Math.abs(d) + ART_EPSILON;
  const root = lambda ? size ** lambda : 1;
  const v = steepness * (d / root); // the quotient first, which cannot overflow
  const t = Math.abs(v);
  const { tail, slope } = SIGMOIDS[sigmoid];
  const small = tail(t);
  const large = 1 - small;
  const growth = (steepness / root) * (1 - (lambda * Math.abs(d)) / size);
  const change = slope(t);
  return {
    keep: v < 0 ? small : large,
    swap: v < 0 ? large : small,
    slope: change === 0 ? 0 : change * growth,
  };
}

/**
 * Return one column of P on every segment: the share of an input in each value.
 * @param {Net} net
 * @param {SoftRun} run
 * @param {number} input
 * @returns {Float64Array}
 */
export function sharesOf(net, run, input) {
  const shares = new Float64Array(net.segments.length);
  const { keep, swap } = run.forward;
  shares[input] = 1;
  net.comparators.forEach((c, index) => {
    const [a, b] = [shares[c.inLo], shares[c.inHi]];
    shares[c.outLo] = keep[index] * a + swap[index] * b;
    shares[c.outHi] = keep[index] * b + swap[index] * a;
  });
  return shares;
}

/**
 * Return P (n × n, row by row): row j has the share of each input in output j.
 * @param {Net} net
 * @param {SoftRun} run
 * @returns {Float64Array}
 */
export function permutationOf(net, run) {
  const { n } = net;
  const P = new Float64Array(n * n);
  for (let column = 0; column < n; column++) {
    const shares = sharesOf(net, run, column);
    net.outputs.forEach((segment, row) => (P[row * n + column] = shares[segment]));
  }
  return P;
}

/**
 * Return the soft rank of each input, Pᵀ (0, …, n-1).
 * @param {Float64Array} P
 * @param {number} n
 * @returns {Float64Array}
 */
export function ranksOf(P, n) {
  const ranks = new Float64Array(n);
  P.forEach((share, place) => (ranks[place % n] += Math.floor(place / n) * share));
  return ranks;
}

/**
 * Return the cross entropy of P against the true ranks of the inputs, and its derivative by P.
 * @param {Float64Array} P
 * @param {ArrayLike<number>} ranks The true rank of each input.
 * @param {string} form One of FORMS.
 * @returns {{loss: number, seeds: Float64Array}}
 */
export function crossEntropyOf(P, ranks, form) {
  const n = ranks.length;
  const seeds = new Float64Array(n * n);
  let loss = 0;
  for (let input = 0; input < n; input++) {
    const place = ranks[input] * n + input;
    const log = Math.log(P[place]);
    loss -= Math.max(log, LOWEST_LOG) / n;
    if (form === "error-free") seeds[place] = -1 / (n * Math.max(P[place], SURROGATE_LEAST));
    else if (log > LOWEST_LOG) seeds[place] = -1 / (n * P[place]);
  }
  return { loss, seeds };
}

/**
 * Return the gradient of a number by the value on each segment; the first n belong to the inputs.
 *
 * The number is given by its derivatives: by the outputs, by P, or by both.
 * @param {Net} net
 * @param {SoftRun} run
 * @param {{values?: ArrayLike<number>, P?: Float64Array}} seeds
 * @returns {Float64Array}
 */
export function gradientOf(net, run, seeds) {
  const { n, comparators, outputs } = net;
  const byWeights = seeds.P ? gradientByWeights(net, run, seeds.P) : null;
  const gradient = new Float64Array(net.segments.length);
  for (let wire = 0; wire < n; wire++) gradient[outputs[wire]] = seeds.values?.[wire] ?? 0;
  for (let index = comparators.length - 1; index >= 0; index--) {
    const c = comparators[index];
    const [lo, hi, slope] = [gradient[c.outLo], gradient[c.outHi], run.slope[index]];
    let shift = 0;
    if (slope !== 0) {
      shift = slope * ((hi - lo) * (run.values[c.inHi] - run.values[c.inLo]) + (byWeights?.[index] ?? 0));
    }
    gradient[c.inLo] = run.keep[index] * lo + run.swap[index] * hi - shift;
    gradient[c.inHi] = run.keep[index] * hi + run.swap[index] * lo + shift;
  }
  return gradient;
}

/** Return the derivative by each keep weight less that by the swap weight, for derivatives by P. */
function gradientByWeights(net, run, seeds) {
  const { n, comparators, outputs } = net;
  const byWeights = new Float64Array(comparators.length);
  const back = new Float64Array(net.segments.length);
  for (let column = 0; column < n; column++) {
    let isSeeded = false;
    for (let wire = 0; wire < n; wire++) {
      back[outputs[wire]] = seeds[wire * n + column];
      isSeeded ||= seeds[wire * n + column] !== 0;
    }
    if (!isSeeded) continue;
    const shares = sharesOf(net, run, column);
    for (let index = comparators.length - 1; index >= 0; index--) {
      const c = comparators[index];
      const [lo, hi] = [back[c.outLo], back[c.outHi]];
      byWeights[index] += (hi - lo) * (shares[c.inHi] - shares[c.inLo]);
      back[c.inLo] = run.keep[index] * lo + run.swap[index] * hi;
      back[c.inHi] = run.keep[index] * hi + run.swap[index] * lo;
    }
  }
  return byWeights;
}
