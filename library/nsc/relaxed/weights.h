// Weights of comparators, in C++ and in CUDA.
//
// Both tails: 1 - f(v) has no digits left where f(v) rounds to 1. So keep = f(v) and swap = f(-v)
// are each computed from their own tail, and both are kept. A mix is a sum of products of
// non-negative numbers, so nothing cancels. Values move towards each other by the smaller weight
// times their difference: two operations, as exact as four.
#pragma once

#include <nsc/relaxed/relaxations.h>

namespace nsc {

// The two weights of a comparator: keep = f(v) and swap = f(-v) = 1 - f(v).
template <class real>
struct Sigmoid {
    Vec<real> keep, swap;
};

// The smaller weight is computed, so that both have full precision: 1 - keep has none where keep
// rounds to 1.
template <class Relaxation, class real>
NSC_FUNCTION Sigmoid<real> sigmoid(Vec<real> v) {
    const Vec<real> tail = Relaxation::template tail<real>(magnitude<real>(v)), rest = 1 - tail;
    return {v < 0 ? tail : rest, v < 0 ? rest : tail};
}

// f'(v), given both weights.
template <class Relaxation, class real>
NSC_FUNCTION Vec<real> sigmoid_slope(Vec<real> v, Vec<real> keep, Vec<real> swap) {
    return Relaxation::template slope<real>(magnitude<real>(v), keep, swap);
}

// The activation replacement phi(d) and its derivative.
template <class Relaxation, class real>
NSC_FUNCTION Vec<real> phi(Vec<real> d) {
    return d * Relaxation::template stretch<real>(magnitude<real>(d));
}

template <class Relaxation, class real>
NSC_FUNCTION Vec<real> phi_slope(Vec<real> d) {
    const Vec<real> size = magnitude<real>(d), stretch = Relaxation::template stretch<real>(size);
    return stretch * Relaxation::template elasticity<real>(size, stretch);
}

// The weights of mixes, by slot.
template <class T>
struct Mixes {
    T *keep, *swap;
    NSC_FUNCTION Mixes from(int64_t slot) const { return {keep + slot, swap + slot}; }
};

// The weights that the keys pass leaves for the routing and for the backward pass, by slot. The
// weights of the error-free form are 0 and 1 forward, and the relaxed ones backward; else both are
// the same arrays.
template <class T>
struct Weights {
    Mixes<T> forward, backward;
    T *gap;  // x[hi] - x[lo]; infinite where the weights are constant
    NSC_FUNCTION Weights from(int64_t slot) const {
        return {forward.from(slot), backward.from(slot), gap + slot};
    }
};

// Arrays of weights of a sample.
template <class Relaxation>
constexpr int64_t arrays = Relaxation::error_free ? 5 : 3;

// Weights in arrays that are `stride` apart.
template <class Relaxation, class T>
NSC_FUNCTION Weights<T> weights_at(T *start, int64_t stride) {
    const Mixes<T> forward = {start, start + stride};
    T *behind = start + 2 * stride;
    if (!Relaxation::error_free) return {forward, forward, behind};
    return {forward, {behind, behind + stride}, behind + 2 * stride};
}

// A comparator's weights.
template <class T>
struct Mix {
    T keep, swap;
};

// Both results of a comparator are mixed in this order of terms: a compiler that fuses a product
// with the sum then fuses the same one in both, and renaming the wires changes no bit.
template <class T>
NSC_STEP T mixed(Mix<T> m, T a, T b) {
    return m.keep * a + m.swap * b;
}

template <class Row, class T>
NSC_STEP void mix(Row &lo, Row &hi, Mix<T> m) {
    const Row a = lo, b = hi;
    lo = mixed(m, a, b);
    hi = mixed(m, b, a);
}

}  // namespace nsc
