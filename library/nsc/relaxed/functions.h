// Functions that relaxations are made of, in C++ and in CUDA: a Vec is a register of numbers, or
// one.
//
// Each polynomial interpolates its function at the Chebyshev nodes of its interval and was worked
// out in 60 digits; the correction of a root is fitted for the least relative error of the power.
// With the range reductions below every function is within 4 units in the last place, tails
// included; the tests hold it.
#pragma once

#include <nsc/numbers.h>

namespace nsc {

template <class real>
NSC_FUNCTION Vec<real> magnitude(Vec<real> v) {
    constexpr Bits<real> sign = Bits<real>(1) << (8 * sizeof(real) - 1);
    return from_bits<real>(bits_of<real>(v) & ~sign);
}

// The coefficients of a polynomial, from the constant on.
template <class real, int count>
struct Polynomial {
    real at[count];
};

// Sums coefficients.at[k] x^k.
template <class real, int count>
NSC_FUNCTION Vec<real> sum_of(Polynomial<real, count> coefficients, Vec<real> x) {
    Vec<real> sum = all(coefficients.at[count - 1]);
    NSC_UNROLL
    for (int k = count - 2; k >= 0; --k) sum = sum * x + coefficients.at[k];
    return sum;
}

// Constants that differ between the arithmetic types:
//
// - mantissa_bits, exponent_bias: the layout of the type.
// - rounding: added to a number, it leaves no places behind the point, and the last bits are the
//   bits of an exponent.
// - log2_high, log2_low: log(2) in two parts; products of the first with exponents are exact.
// - half_root: the bits of 1/sqrt(2).
// - newton_steps: Newton steps from the corrected guess of a root to full precision.
// - exp: (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2.
// - log: (2 atanh(s) / s - 2) / s^2 in s^2, for |s| <= tan(pi/8)^2, which is log(m) of
//   1/sqrt(2) <= m <= sqrt(2).
// - atan: (atan(z) / z - 1) / z^2 in z^2, for 0 <= z <= 1.
// - tail: (t + 4) exp(t^2/2) Phi(-t) in t / (t + 4) - 5/8, Phi the normal distribution, for t from
//   0 to where Phi(-t) leaves the normal numbers. The form is from Shepherd & Laframboise 1981;
//   around 5/8 its rounding errors are smallest.
template <class real>
struct Constants;

// Constants of the inverse square and fourth root:
//
// - guess: the bits of a number, shifted right by 1 or 2 and taken from this, are the bits of a
//   guess y at its inverse root. Searched for the least |d|, d = 1 - x y^2 or 1 - x y^4.
// - correction: ((1 - d)^(-1/2) - 1) / d or ((1 - d)^(-1/4) - 1) / d for |d| <= 0.0682 or 0.1236:
//   what the guess lacks, in float32 to 9e-10 or 1e-8, in float64 to 3e-11 or 5e-10.
template <class real, int root>
struct RootConstants;

template <>
struct Constants<float> {
    static constexpr int mantissa_bits = 23, exponent_bias = 127;
    static constexpr float rounding = 12583039;
    static constexpr float log2_high = 0.693145751953125, log2_low = 1.42860677e-6;
    static constexpr int32_t half_root = 0x3f3504f3;
    static constexpr int newton_steps = 0;
    static NSC_FUNCTION constexpr Polynomial<float, 5> exp() {
        return {{0.5, 0.166665769, 0.0416665545, 0.00836319488, 0.00139262034}};
    }
    static NSC_FUNCTION constexpr Polynomial<float, 3> log() {
        return {{0.66666685, 0.399887806, 0.295799494}};
    }
    static NSC_FUNCTION constexpr Polynomial<float, 9> atan() {
        return {{-0.333333317, 0.199997393, -0.142785687, 0.110337641, -0.0865688043, 0.0625016944,
                 -0.035871539, 0.0135077714, -0.00238699732}};
    }
    static NSC_FUNCTION constexpr Polynomial<float, 11> tail() {
        return {{0.624820466, -0.891381673, 1.0741856, -1.0536018, 0.777799838, -0.33914826,
                 -0.0435166202, 0.169012995, -0.139204871, -0.196684517, -0.0574274183}};
    }
};

template <>
struct RootConstants<float, 2> {
    static constexpr int32_t guess = 0x5f374840;
    static NSC_FUNCTION constexpr Polynomial<float, 5> correction() {
        return {{0.5000000014, 0.3749978849, 0.3124966822, 0.2749050324, 0.2476998511}};
    }
};

template <>
struct RootConstants<float, 4> {
    static constexpr int32_t guess = 0x4f581840;
    static NSC_FUNCTION constexpr Polynomial<float, 5> correction() {
        return {{0.2500000239, 0.1562427445, 0.117174033, 0.09674244691, 0.08267930173}};
    }
};

template <>
struct Constants<double> {
    static constexpr int mantissa_bits = 52, exponent_bias = 1023;
    static constexpr double rounding = 6755399441056767;
    static constexpr double log2_high = 0.69314718036912382, log2_low = 1.9082149292705877e-10;
    static constexpr int64_t half_root = 0x3fe6a09e667f3bcd;
    static constexpr int newton_steps = 1;
    static NSC_FUNCTION constexpr Polynomial<double, 10> exp() {
        return {{0.5, 0.16666666666666667, 0.041666666666624038, 0.0083333333333300549,
                 0.0013888888917258758, 1.9841269863088254e-4, 2.4801521225986432e-5,
                 2.7557268406190795e-6, 2.7620121717381935e-7, 2.5100411082014901e-8}};
    }
    static NSC_FUNCTION constexpr Polynomial<double, 8> log() {
        return {{0.66666666666666666, 0.40000000000000877, 0.28571428570803612, 0.22222222391713917,
                 0.18181795640132906, 0.15386239702814658, 0.13268773138656885,
                 0.13086626147840102}};
    }
    static NSC_FUNCTION constexpr Polynomial<double, 20> atan() {
        return {{-0.3333333333333333,    0.19999999999997532,    -0.14285714285384132,
                 0.11111111093490828,    -0.090909085908919342,  0.076922989710332169,
                 -0.066665646992891042,  0.058815068777936561,   -0.052579733342841108,
                 0.04737749579527779,    -0.042603566326016521,  0.037494868125352471,
                 -0.031277189066996385,  0.023696731580048622,   -0.015535152475414176,
                 0.0083689311784501621,  -0.0034958859739163095, 0.0010496035084968515,
                 -1.9996189377901382e-4, 1.8061954618612152e-5}};
    }
    static NSC_FUNCTION constexpr Polynomial<double, 25> tail() {
        return {{0.62482046525604509,   -0.89138168293149617,   1.0741861375123792,
                 -1.0535977207390769,   0.77775369300482827,    -0.33961385212535415,
                 -0.043641273702339333, 0.18141696789183204,    -0.078709357922949019,
                 -0.066043619801711438, 0.073802098177121056,   0.022226332719490928,
                 -0.057979316367302279, -0.0083228567349540734, 0.047649215465235191,
                 0.0063819494210518026, -0.042634298185917101,  -0.011377540258399676,
                 0.040565961916937004,  0.02716739878727418,    -0.027437153895121176,
                 -0.049386638620891862, -0.029324412412092989,  -0.0071597319112107679,
                 -0.0003181317716908327}};
    }
};

template <>
struct RootConstants<double, 2> {
    static constexpr int64_t guess = 0x5fe6e90800000000;
    static NSC_FUNCTION constexpr Polynomial<double, 6> correction() {
        return {{0.5000000023, 0.3750000041, 0.3124960257, 0.273432485, 0.247804961, 0.2273851983}};
    }
};

template <>
struct RootConstants<double, 4> {
    static constexpr int64_t guess = 0x4feb030800000000;
    static NSC_FUNCTION constexpr Polynomial<double, 6> correction() {
        return {{0.2500000245, 0.1562500536, 0.1171744664, 0.09519660163, 0.08264345295,
                 0.07266320849}};
    }
};

// exp(r) - 1 for |r| <= log(2) / 2, and 2^k for a whole k that was rounded by adding `rounding`.
template <class real>
NSC_FUNCTION Vec<real> small_exp_less_1(Vec<real> r) {
    return r + r * r * sum_of(Constants<real>::exp(), r);
}

template <class real>
NSC_FUNCTION Vec<real> small_exp(Vec<real> r) {
    return (sum_of(Constants<real>::exp(), r) * r + 1) * r + 1;
}

template <class real>
NSC_FUNCTION Vec<real> power_of_two(Vec<real> shifted) {
    return from_bits<real>(bits_of<real>(shifted) << Constants<real>::mantissa_bits);
}

// The lesser of t >= 0 and the least t whose 2^k is zero for exp(-t); NaN stays NaN.
template <class real>
NSC_FUNCTION Vec<real> within_exp(Vec<real> t) {
    return lesser(all(real(Constants<real>::exponent_bias * 0.69314718055994531)), t);
}

// The exponential is zero where it is below the smallest normal number.
template <class real>
NSC_FUNCTION Vec<real> logistic_tail(Vec<real> t) {
    using C = Constants<real>;
    // -t = k log(2) + r; log(2) in two parts, the first so short that its products with k are
    // exact.
    const Vec<real> inside = within_exp<real>(t);
    const Vec<real> shifted = C::rounding - inside * real(1.4426950408889634),
                    k = shifted - C::rounding;
    const Vec<real> r = (-inside - k * C::log2_high) - k * C::log2_low;
    const Vec<real> odds = small_exp<real>(r) * power_of_two<real>(shifted);
    return odds / (1 + odds);
}

// factor * exp(-t^2 / 2), zero where the exponential is below the smallest normal number, so from
// 64 on. t^2 in two parts, the first exact.
template <class real>
NSC_FUNCTION Vec<real> exp_half_square(Vec<real> t, Vec<real> factor) {
    using C = Constants<real>;
    constexpr Bits<real> low_half = (Bits<real>(1) << (C::mantissa_bits + 2) / 2) - 1;
    const Vec<real> u = 64 < t ? all(real(64)) : t,
                    high = from_bits<real>(bits_of<real>(u) & ~low_half);
    const Vec<real> low = (high - u) * (high + u) * real(0.5),
                    inside = within_exp<real>(high * high * real(0.5));
    const Vec<real> shifted = C::rounding - inside * real(1.4426950408889634),
                    k = shifted - C::rounding;
    const Vec<real> r = (-inside - k * C::log2_high) + (low - k * C::log2_low);
    return (factor + factor * small_exp_less_1<real>(r)) * power_of_two<real>(shifted);
}

// The normal distribution at -t, which is zero from 64 on.
template <class real>
NSC_FUNCTION Vec<real> normal_tail(Vec<real> t) {
    const Vec<real> u = t > 64 ? all(real(64)) : t, w = 1 / (u + 4), z = u * w - real(0.625);
    const Vec<real> tail = exp_half_square<real>(u, sum_of(Constants<real>::tail(), z) / (u + 4));
    return t == 0 ? all(real(0.5)) : tail;
}

// 1/2 - atan(t) / pi, which is atan(1/t) / pi.
template <class real>
NSC_FUNCTION Vec<real> cauchy_tail(Vec<real> t) {
    const Vec<real> z = t > 1 ? 1 / t : t, w = z * z;
    const Vec<real> turn =
        (z + z * w * sum_of(Constants<real>::atan(), w)) * real(0.31830988618379067);
    return t > 1 ? turn : real(0.5) - turn;
}

// y^root, for a root of 2 or 4.
template <int root, class T>
NSC_FUNCTION T power_of(T y) {
    const T square = y * y;
    if constexpr (root == 2)
        return square;
    else
        return square * square;
}

// x^(-1/root) of a finite x > 0: a guess from the exponent, a polynomial correction, then Newton
// steps.
template <int root, class real>
NSC_FUNCTION Vec<real> inverse_root(Vec<real> x) {
    using C = Constants<real>;
    using Root = RootConstants<real, root>;
    // Factor by factor: y^root is no normal number where x is close to the largest one.
    const auto lacks = [&](Vec<real> y) NSC_INLINE {
        const Vec<real> factor = root == 2 ? y : y * y;
        return 1 - x * factor * factor;
    };
    Vec<real> y = from_bits<real>(Root::guess - (bits_of<real>(x) >> root / 2));
    const Vec<real> d = lacks(y);
    y = y + y * (d * sum_of(Root::correction(), d));
    for (int step = 0; step < C::newton_steps; ++step) y = y + y * lacks(y) / root;
    return y;
}

// log(x) = exponent log(2) + of_fraction for a normal, finite x > 0. x = 2^exponent m with
// 1/sqrt(2)
// <= m < sqrt(2), log(m) = 2 atanh(s).
template <class real>
struct LogarithmParts {
    NSC_FUNCTION explicit LogarithmParts(Vec<real> x) {
        using C = Constants<real>;
        const Vec<Bits<real>> bits = bits_of<real>(x),
                              e = (bits - C::half_root) >> C::mantissa_bits;
        const Vec<real> m = from_bits<real>(bits - (e << C::mantissa_bits)), s = (m - 1) / (m + 1),
                        w = s * s;
        of_fraction = 2 * s + s * w * sum_of(C::log(), w);
        exponent = converted<real>(e);
    }
    Vec<real> exponent, of_fraction;
};

// The logarithm of a normal, finite x > 0; NaN stays NaN.
template <class real>
NSC_FUNCTION Vec<real> logarithm(Vec<real> x) {
    using C = Constants<real>;
    const LogarithmParts<real> log(x);
    const Vec<real> not_a_number = x - x;
    return log.exponent * C::log2_high +
           (log.of_fraction + log.exponent * C::log2_low + not_a_number);
}

// log(1 + x) for |x| <= 1/4: by the series where it converges at once.
template <class real>
NSC_FUNCTION Vec<real> logarithm_1p(Vec<real> x) {
    const auto is_small = magnitude<real>(x) < real(0x1p-10);
    Vec<real> log = {};
    if (any(is_small)) {
        const Polynomial<real, 5> series = {
            {real(-1 / 2.), real(1 / 3.), real(-1 / 4.), real(1 / 5.), real(-1 / 6.)}};
        log = x + x * x * sum_of(series, x);
    }
    if (any(is_small == 0)) {
        const Vec<real> u = 1 + x, rounded_off = x - (u - 1);
        log = is_small ? log : logarithm<real>(u) + rounded_off / u;
    }
    return log;
}

// x^-lambda, x > 0, normal and finite: 2^-(k + f) with k + f = lambda log2(x) and |f| <= 1/2.
// lambda comes in two parts too, the first so short that its products with exponents are exact.
template <class real>
NSC_FUNCTION Vec<real> inverse_power(Vec<real> x, real lambda, real lambda_high, real lambda_low) {
    using C = Constants<real>;
    const LogarithmParts<real> log(x);
    const Vec<real> high = log.exponent * lambda_high;
    const Vec<real> low =
        log.exponent * lambda_low + log.of_fraction * (lambda * real(1.4426950408889634));
    const Vec<real> shifted = C::rounding - (high + low), k = shifted - C::rounding;
    const Vec<real> r = ((k + high) + low) * real(-0.69314718055994531);
    return (1 + small_exp_less_1<real>(r)) * power_of_two<real>(shifted);
}

}  // namespace nsc
