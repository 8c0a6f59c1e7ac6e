// Comparators on registers of values, and backwards on gradients.
#pragma once

#include <nsc/relaxed/plan.h>
#include <nsc/relaxed/weights.h>
#include <nsc/vectors.h>

namespace nsc {

// The keys pass runs as many comparators at a time as a register has lanes. When there are enough
// samples, a lane is a sample: the wires of a group of samples are transposed and run bundle by
// bundle (samples.h). Else the lanes are comparators of one layer, gathered from the wires of one
// sample (layers.h). Both call the functions below, so that a sample's results do not depend on the
// rest of its batch.

// Reals that the weights of a sample take. Loops ask the plan for sizes, and capture none: what
// they capture is no constant to the compiler, once they are run by the threads of a pool.
template <class P>
int64_t weights_per_sample(const P &plan) {
    return arrays<typename P::Relaxation> * plan.slots;
}

// Whether comparators of these values may meet an infinity or NaN: whether one of the values is
// infinite, NaN, or so large that a difference, or the argument of the sigmoid, may overflow. Mixed
// values are no larger than these.
template <class Relaxation, class real>
inline bool are_extreme(const Vec<real> *values, int64_t count, Vec<real> steepness) {
    // The bits of sizes are ordered as these are, with infinity and then NaN behind.
    Vec<Bits<real>> largest{};
    for (int64_t i = 0; i < count; ++i) {
        const Vec<Bits<real>> size = bits_of<real>(magnitude<real>(values[i]));
        largest = size > largest ? size : largest;
    }
    const Vec<real> factor =
        4 * Relaxation::template stretch<real>(Vec<real>{});  // the largest stretch is the one of 0
    const auto finite =
        from_bits<real>(largest) * (factor + factor * steepness) < real(__builtin_inf());
    return any(~finite);
}

// How comparators change gradients of the values, by slot. The gradients of the two wires move
// towards each other by `share` of their difference. Where the last bit of a share is set, the
// larger value is on the first wire, and the gradients change places before. The gradient of the
// steepness is the difference hi - lo times `steepness`, if that is wanted.
template <class T>
struct Derivatives {
    T *share, *steepness;
    Derivatives from(int64_t slot) const {
        return {share + slot, steepness ? steepness + slot : nullptr};
    }
};

template <class real>
inline void move_gradients(Vec<real> &lo, Vec<real> &hi, Vec<real> share) {
    const auto swapped = (bits_of<real>(share) & 1) != 0;
    const Vec<real> a = swapped ? hi : lo, b = swapped ? lo : hi, gap = b - a;
    lo = a + share * gap;
    hi = b - share * gap;
}

// What is kept where the values alone are wanted.
struct Nothing {
    Nothing from(int64_t) const { return {}; }
};

template <class A, class B>
constexpr bool are_same = false;
template <class A>
constexpr bool are_same<A, A> = true;

// From values to mixed values, in place. Keeps nothing, the weights, or the derivatives. The two
// values move towards each other by the smaller weight of their difference, so nothing depends on
// which wire has the larger one. `careful`: some values are extreme.
template <class real, class Relaxation, bool careful, class Kept>
NSC_NOINLINE void compare(int32_t count, const Comparator *at, Vec<real> *block,
                          Vec<real> steepness, Kept kept) {
    using Row = Vec<real>;
    constexpr bool keeps_weights = are_same<Kept, Weights<Row>>,
                   keeps_derivatives = are_same<Kept, Derivatives<Row>>;
    constexpr real infinity = real(__builtin_inf());
    Row lows[most_in_bundle], highs[most_in_bundle], gaps[most_in_bundle],
        activation[most_in_bundle], elastic[most_in_bundle];
    for (int32_t i = 0; i < count; ++i) {
        const Row a = block[at[i].lo], b = block[at[i].hi];
        const Row low = lesser(b, a), high = greater(a, b), gap = high - low,
                  stretch = Relaxation::template stretch<real>(gap);
        lows[i] = low, highs[i] = high, gaps[i] = gap;
        activation[i] = gap * stretch;
        if constexpr (keeps_derivatives)
            elastic[i] = Relaxation::template elasticity<real>(gap, stretch);
    }
    for (int32_t i = 0; i < count; ++i) {
        const int64_t place = at[i].slot;
        const Row a = block[at[i].lo], b = block[at[i].hi], v = steepness * activation[i];
        Row low = lows[i], high = highs[i], gap = gaps[i],
            tail = Relaxation::template tail<real>(v);
        const auto swapped = b < a;
        auto infinite = swapped & ~swapped;
        if constexpr (careful) {
            const auto tie = a == b;
            infinite = (gap == infinity) | (tie & (magnitude<real>(a) == infinity));
            gap = tie ? Row{} : gap;
            tail = infinite     ? (tie ? all(real(0.5)) : Row{})
                   : gap == gap ? tail
                                : gap;  // infinite values sort exactly
        }
        if constexpr (keeps_weights) {
            const Row rest = 1 - tail, difference = swapped ? -gap : gap;
            kept.backward.keep[place] = swapped ? tail : rest,
            kept.backward.swap[place] = swapped ? rest : tail;
            kept.gap[place] = infinite ? all(infinity) : difference;
        }
        if constexpr (keeps_derivatives) {
            Row slope = sigmoid_slope<Relaxation, real>(v, 1 - tail, tail), change = v * elastic[i],
                effect = activation[i];
            if constexpr (careful) {  // infinite values are constant, and so are weights of 0
                const auto constant = infinite | (tail == 0);
                slope = constant ? Row{} : slope, change = constant ? Row{} : change,
                effect = constant ? Row{} : effect;
            }
            const Vec<Bits<real>> share = bits_of<real>(tail - change * slope) & ~Bits<real>(1);
            kept.share[place] = from_bits<real>(swapped ? share | 1 : share);
            if (kept.steepness)
                kept.steepness[place] = slope * (careful ? (infinite ? Row{} : gap) : gap) * effect;
        }
        if constexpr (Relaxation::error_free) {
            if constexpr (keeps_weights) {  // a tie keeps its places
                const Row keep = tail == tail ? (swapped ? Row{} : all(real(1))) : tail;
                kept.forward.keep[place] = keep, kept.forward.swap[place] = 1 - keep;
            }
            if constexpr (careful)
                low = tail == tail ? low : tail, high = tail == tail ? high : tail;
            block[at[i].lo] = low, block[at[i].hi] = high;
        } else {
            if constexpr (careful) gap = tail == 0 ? Row{} : gap;  // 0 times infinity counts as 0
            block[at[i].lo] = low + tail * gap, block[at[i].hi] = high - tail * gap;
        }
    }
}

// From gradients of the mixed values, in place, and of the weights to gradients of the values;
// `steepness_grad`, unless it is null, takes each comparator's part of the gradient of the
// steepness.
template <class real, class Relaxation>
NSC_NOINLINE void compare_backward(int32_t count, const Comparator *at, Vec<real> *block,
                                   const Vec<real> *weight_grad, Vec<real> steepness,
                                   Weights<Vec<real>> w, Vec<real> *steepness_grad) {
    using Row = Vec<real>;
    constexpr real infinity = real(__builtin_inf());
    Row activation[most_in_bundle], slopes[most_in_bundle];
    for (int32_t i = 0; i < count; ++i) {
        const Row gap = w.gap[at[i].slot] == infinity ? Row{} : w.gap[at[i].slot],
                  size = magnitude<real>(gap), stretch = Relaxation::template stretch<real>(size);
        activation[i] = gap * stretch;
        slopes[i] = steepness * (stretch * Relaxation::template elasticity<real>(size, stretch));
    }
    for (int32_t i = 0; i < count; ++i) {
        const Row a = block[at[i].lo], b = block[at[i].hi], gap = w.gap[at[i].slot];
        const Mix<Row> m = {w.backward.keep[at[i].slot], w.backward.swap[at[i].slot]};
        const Row slope =
            sigmoid_slope<Relaxation, real>(steepness * activation[i], m.keep, m.swap);
        // A weight of 0 is constant, and a gradient that reaches it may be infinite.
        const auto constant = (gap == infinity) | (m.keep == 0) | (m.swap == 0);
        const Row through = constant ? Row{} : (weight_grad[at[i].slot] - (a - b) * gap) * slope,
                  shift = through * slopes[i];
        block[at[i].lo] = mixed(m, a, b) - shift;
        block[at[i].hi] = mixed(m, b, a) + shift;
        if (steepness_grad) steepness_grad[i] = through * activation[i];
    }
}

// The sum over slots of their parts of the gradient of the steepness. The order is the same for
// both layouts: the slots that are equal modulo slot_alignment, last first, then those sums.
template <class T>
inline T sum_of_parts(const T *parts) {
    T sum{};
    for (int64_t k = 0; k < slot_alignment; ++k) sum += parts[k];
    return sum;
}

}  // namespace nsc
