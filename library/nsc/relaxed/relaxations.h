// Relaxations: how a comparator is softened, in C++ and in CUDA.
//
// With d = x[hi] - x[lo] and v = steepness phi(d) a comparator's weights are f(v) and f(-v) = 1 -
// f(v). f is a sigmoid, phi the activation replacement trick (Petersen et al., ICML 2021).
//
// A comparator with an infinite difference is exact and has slope 0. Equal infinities mix half and
// half. 0 times infinity counts as 0. A value that is compared with NaN becomes NaN. At a tie both
// weights are 1/2; the error-free form leaves tied values in place.
#pragma once

#include <nsc/relaxed/functions.h>

namespace nsc {

// A sigmoid is a struct with
//
//     tail(t)                 f(-t) for t >= 0, the smaller weight of a comparator;
//     slope(t, keep, swap)    f'(v) at |v| = t, given both weights.
//
// Python takes its list from here: the structs behind a line that says where they are from.

// From Petersen et al., ICML 2021
struct logistic {
    template <class real>
    static NSC_FUNCTION Vec<real> tail(Vec<real> t) {
        return logistic_tail<real>(t);
    }
    template <class real>
    static NSC_FUNCTION Vec<real> slope(Vec<real>, Vec<real> keep, Vec<real> swap) {
        return keep * swap;
    }
};

// From Petersen et al., ICLR 2022
struct gaussian {
    template <class real>
    static NSC_FUNCTION Vec<real> tail(Vec<real> t) {
        return normal_tail<real>(t);
    }
    template <class real>
    static NSC_FUNCTION Vec<real> slope(Vec<real> t, Vec<real>, Vec<real>) {
        return exp_half_square<real>(t, all(real(0.39894228040143268)));
    }
};

// From Petersen et al., ICLR 2022
struct reciprocal {
    template <class real>
    static NSC_FUNCTION Vec<real> tail(Vec<real> t) {
        return 1 / (2 + t);
    }
    template <class real>
    static NSC_FUNCTION Vec<real> slope(Vec<real> t, Vec<real>, Vec<real>) {
        return 1 / ((2 + t) * (2 + t));
    }
};

// From Petersen et al., ICLR 2022
struct cauchy {
    template <class real>
    static NSC_FUNCTION Vec<real> tail(Vec<real> t) {
        return cauchy_tail<real>(t);
    }
    template <class real>
    static NSC_FUNCTION Vec<real> slope(Vec<real> t, Vec<real>, Vec<real>) {
        return real(0.31830988618379067) / (1 + t * t);
    }
};

// From Petersen et al., ICLR 2022
struct optimal {
    template <class real>
    static NSC_FUNCTION Vec<real> tail(Vec<real> t) {
        return t > real(0.25) ? 1 / (16 * t) : real(0.5) - t;
    }
    template <class real>
    static NSC_FUNCTION Vec<real> slope(Vec<real> t, Vec<real>, Vec<real>) {
        return t > real(0.25) ? 1 / (16 * t * t) : all(real(1));
    }
};

// From the exact comparator
struct hard {
    template <class real>
    static NSC_FUNCTION Vec<real> tail(Vec<real> t) {
        return t == t ? Vec<real>{} : t;
    }
    template <class real>
    static NSC_FUNCTION Vec<real> slope(Vec<real>, Vec<real>, Vec<real>) {
        return Vec<real>{};
    }
};

// An activation replacement is a struct with
//
//     stretch(size)                what d is multiplied with, phi(d) = d stretch(|d|);
//     elasticity(size, stretch)    d phi'(d) / phi(d).
//
// phi(d) = d / (|d| + art_epsilon)^lambda is finite at ties.
constexpr double art_epsilon = 1e-10;

// lambda = 0.
struct Unchanged {
    template <class real>
    static NSC_FUNCTION Vec<real> stretch(Vec<real>) {
        return all(real(1));
    }
    template <class real>
    static NSC_FUNCTION Vec<real> elasticity(Vec<real>, Vec<real>) {
        return all(real(1));
    }
};

// lambda = 1 / root, for a root of 2 or 4.
template <int root>
struct Root {
    template <class real>
    static NSC_FUNCTION Vec<real> stretch(Vec<real> size) {
        return inverse_root<root, real>(size + real(art_epsilon));
    }
    template <class real>
    static NSC_FUNCTION Vec<real> elasticity(Vec<real>, Vec<real> stretch) {
        return real(1 - 1.0 / root) +
               real(1.0 / root) * real(art_epsilon) * power_of<root>(stretch);
    }
};

// Any lambda, which is Lambda::value.
template <class Lambda>
struct Power {
    static constexpr double lambda = Lambda::value;
    // lambda in 12 bits: its products with exponents are exact. The sum rounds to a multiple of
    // 2^-12.
    static constexpr double high = (lambda + 0x1.8p40) - 0x1.8p40;
    template <class real>
    static NSC_FUNCTION Vec<real> stretch(Vec<real> size) {
        return inverse_power<real>(size + real(art_epsilon), real(lambda), real(high),
                                   real(lambda - high));
    }
    template <class real>
    static NSC_FUNCTION Vec<real> elasticity(Vec<real> size, Vec<real>) {
        return real(1 - lambda) + real(lambda) * real(art_epsilon) / (size + real(art_epsilon));
    }
};

// A sigmoid, an activation replacement, and whether the forward pass is exact: error-free.
template <class Sigmoid, class Replacement, bool is_error_free>
struct Relaxation : Sigmoid, Replacement {
    static constexpr bool error_free = is_error_free;
};

}  // namespace nsc
