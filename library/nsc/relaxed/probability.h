// Probabilities and their logarithms, in C++ and in CUDA.
#pragma once

#include <nsc/relaxed/functions.h>

namespace nsc {

// `unit` stands for 1 while P is computed. It is a power of two: tiny products stay normal numbers,
// and so do the reciprocals that the gradients of losses begin with. It is balanced between the
// two: both are normal float32 numbers for probabilities from e^-80 to 1. The gradient of a loss
// begins with 1 / (2^72 p); 1/n is multiplied in first, the caller's gradient last.
template <class real>
constexpr real unit = real(0x1p72);

// Losses cut logarithms here, where float32 still has gradients. The least probability, e^-80, is
// in units.
constexpr double lowest_log = -80;
template <class real>
constexpr real least_probability = real(0x1.7fd974d372e45p-116) * unit<real>;

// A probability p and 1 - p, in units; neither is a difference of nearly equal numbers.
template <class real>
struct Probability {
    Vec<real> p, rest;
};

template <class real>
NSC_FUNCTION Probability<real> complement(Probability<real> of) {
    return {of.rest, of.p};
}

// Above this 1 - p would lose digits. There the sum of the column's other entries takes its place.
// Columns sum to 1, so at most one entry is so large.
constexpr double large_probability = 0.75;
template <class real>
NSC_FUNCTION auto is_large(Vec<real> p) {
    return p > real(large_probability) * unit<real>;
}

// The logarithm of a probability. NaN stays NaN.
template <class real>
NSC_FUNCTION Vec<real> log_of(Probability<real> of) {
    const auto large = is_large<real>(of.p);
    Vec<real> log = {};
    if (any(large == 0))
        log = of.p <= least_probability<real> ? all(real(lowest_log))
                                              : logarithm<real>(of.p / unit<real>);
    if (any(large)) log = large ? logarithm_1p<real>(-of.rest / unit<real>) : log;
    return log;
}

// The derivative of that logarithm: 1 / p, and 0 where it is cut. The error-free form has a
// surrogate, 1 / max(p, surrogate_least), as torch's binary cross entropy has it. Its P is exactly
// 0 or 1: the derivative of the cut logarithm is 0 at every wrong entry, so nothing would be
// learned.
constexpr double surrogate_least = 1e-12;
template <class Relaxation, class real>
NSC_FUNCTION Vec<real> slope_of_log(Vec<real> p) {
    constexpr real least = real(surrogate_least) * unit<real>;
    if (Relaxation::error_free) return 1 / (p < least ? all(least) : p);
    return p <= least_probability<real> ? Vec<real>{} : 1 / p;
}

}  // namespace nsc
