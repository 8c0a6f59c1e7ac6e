// Networks of few wires, a relaxation of few operations, and what plain loops make of them.
#pragma once

#include "../expect.h"

#include <nsc/attributes.h>
#include <nsc/relaxed/functions.h>
#include <nsc/relaxed/network.h>

// f(v) = 1 / (1 + exp(-v)), phi(d) = d / (1 + |d|).
template <bool is_error_free>
struct LogisticOf {
    static constexpr bool error_free = is_error_free;
    template <class real>
    static NSC_FUNCTION nsc::Vec<real> tail(nsc::Vec<real> t) {
        return nsc::logistic_tail<real>(t);
    }
    template <class real>
    static NSC_FUNCTION nsc::Vec<real> slope(nsc::Vec<real>, nsc::Vec<real> keep,
                                             nsc::Vec<real> swap) {
        return keep * swap;
    }
    template <class real>
    static NSC_FUNCTION nsc::Vec<real> stretch(nsc::Vec<real> size) {
        return 1 / (1 + size);
    }
    template <class real>
    static NSC_FUNCTION nsc::Vec<real> elasticity(nsc::Vec<real>, nsc::Vec<real> stretch) {
        return stretch;
    }
};

using Logistic = LogisticOf<false>;
using Exact = LogisticOf<true>;

// What plain loops run: a comparator leaves the minimum on wire lo.
struct Exchange {
    int lo, hi;
};

// The bitonic sorter of 4 wires in three codelets, one of four wires and two of one shape.
struct Bitonic {
    static constexpr int64_t wires = 4, comparators = 6, layers = 3, merge_layers = 0;
    static constexpr int64_t slots = 48, longest_codelet = 16;
    static constexpr int64_t codelet_count = 3, butterfly_count = 3;
    static constexpr nsc::Codelet codelets[] = {
        {0, 0, 0, 0, 1}, {1, 0, 0, 16, 0}, {1, 0, 2, 32, 0}};
    static constexpr uint16_t spreads[] = {0, 1, 2, 3};
    static constexpr nsc::Shape shapes[] = {{4, 0, 4, 0}, {2, 4, 1, 1}};
    static constexpr nsc::Pair pairs[] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}};
    static constexpr nsc::Flips flips[] = {{{0, 0}}, {{2, 0}}};
    static constexpr nsc::ShapeButterfly shape_butterflies[] = {{nsc::cross, {0, 1, 2, 3}},
                                                                {nsc::single, {0, 1, 0, 0}}};
    static constexpr Exchange exchanges[] = {{0, 1}, {3, 2}, {0, 2}, {1, 3}, {0, 1}, {2, 3}};
};

// A network of 5 wires, which are no multiple of a register's lanes. No comparator touches wire 2.
// It has the other two patterns of butterflies, and does not sort.
struct Braid {
    static constexpr int64_t wires = 5, comparators = 6, layers = 4, merge_layers = 0;
    static constexpr int64_t slots = 16, longest_codelet = 16;
    static constexpr int64_t codelet_count = 1, butterfly_count = 2;
    static constexpr nsc::Codelet codelets[] = {{0, 0, 0, 0, 0}};
    static constexpr uint16_t spreads[] = {0, 1, 3, 4};
    static constexpr nsc::Shape shapes[] = {{4, 0, 6, 0}};
    static constexpr nsc::Pair pairs[] = {{0, 1}, {2, 3}, {1, 2}, {1, 2}, {0, 1}, {2, 3}};
    static constexpr nsc::Flips flips[] = {{{0b010001, 0}}};
    static constexpr nsc::ShapeButterfly shape_butterflies[] = {{nsc::funnel, {0, 1, 2, 3}},
                                                                {nsc::fan, {0, 1, 2, 3}}};
    static constexpr Exchange exchanges[] = {{1, 0}, {3, 4}, {1, 3}, {1, 3}, {1, 0}, {3, 4}};
};

// The values of a relaxed network and P, by the definitions.
template <class Network>
struct Plain {
    static constexpr int wires = Network::wires;
    double values[wires], P[wires][wires];
    Plain(const double *x, double steepness) {
        for (int i = 0; i < wires; ++i) {
            values[i] = x[i];
            for (int k = 0; k < wires; ++k) P[i][k] = i == k;
        }
        for (const Exchange &each : Network::exchanges) {
            const double a = values[each.lo], b = values[each.hi], d = b - a,
                         v = steepness * d / (1 + fabs(d));
            const double kept = 1 / (1 + exp(-v)), swapped = 1 / (1 + exp(v));
            values[each.lo] = kept * a + swapped * b;
            values[each.hi] = kept * b + swapped * a;
            for (int k = 0; k < wires; ++k) {
                const double lo = P[each.lo][k], hi = P[each.hi][k];
                P[each.lo][k] = kept * lo + swapped * hi;
                P[each.hi][k] = kept * hi + swapped * lo;
            }
        }
    }
};

// The derivative of function() by a number that it reads.
template <class Function>
double derivative(double &at, Function function) {
    const double before = at, step = 1e-5;
    at = before + step;
    const double above = function();
    at = before - step;
    const double below = function();
    at = before;
    return (above - below) / (2 * step);
}

// Numbers from -1 to 1 without an order.
inline double number(int64_t i) {
    const double turns = 0.6180339887498949 * double(i + 1);
    return 2 * (turns - floor(turns)) - 1;
}

// How near results of a type are to those in double.
template <class real>
constexpr double nearly = sizeof(real) == 4 ? 2e-6 : 1e-13;
// Derivatives, whose differences in double have fewer digits.
template <class real>
constexpr double nearly_slope = sizeof(real) == 4 ? 2e-5 : 1e-8;
