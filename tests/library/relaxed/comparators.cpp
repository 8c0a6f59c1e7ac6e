// Comparators on registers: values, what is kept of them, and gradients, against one comparator in
// double.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/comparators.h>

using namespace nsc;

template <class Relaxed>
struct TwoWires {
    using Relaxation = Relaxed;
    static constexpr int64_t wires = 2, slots = 3;
};

constexpr Comparator only[] = {{0, 1, 0}}, reversed[] = {{1, 0, 0}};
constexpr double steepness = 3;

// Two values in each lane, in both orders.
template <class real>
struct Pairs {
    explicit Pairs(int from = 0) {
        for (int k = 0; k < lanes<real>; ++k)
            rows[0][k] = real(number(2 * (k + from))),
            rows[1][k] = real(number(2 * (k + from) + 1));
    }
    Pairs(double a, double b) { rows[0] = all(real(a)), rows[1] = all(real(b)); }
    Vec<real> rows[2];
};

// What is kept of a comparator.
template <class real, class Relaxed>
struct Held {
    Weights<Vec<real>> weights() { return weights_at<Relaxed>(rows, 3); }
    Derivatives<Vec<real>> derivatives() { return {rows, rows + 3}; }
    Vec<real> rows[15] = {};
};

template <class Relaxed, bool careful, class real, class Kept>
static void run(Pairs<real> &pairs, Kept kept, const Comparator *at = only,
                double steepness = ::steepness) {
    const Vec<real> steep = all(real(steepness));
    compare<real, careful, 1>(TwoWires<Relaxed>(), 1, at, pairs.rows, &steep, kept);
}

// The two values and the weight keep of one comparator.
struct Result {
    double lo, hi, keep;
};

static Result plain(double a, double b, double steepness = ::steepness) {
    const double v = steepness * (b - a) / (1 + fabs(b - a)), keep = 1 / (1 + exp(-v));
    return {keep * a + (1 - keep) * b, keep * b + (1 - keep) * a, keep};
}

template <class real, bool careful>
static void expect_values() {
    const Pairs<real> before;
    Pairs<real> alone = before, weighed = before, derived = before, turned = before;
    Held<real, Logistic> held, shares;
    run<Logistic, careful>(alone, Nothing());
    run<Logistic, careful>(weighed, held.weights());
    run<Logistic, careful>(derived, shares.derivatives());
    run<Logistic, careful>(turned, Nothing(), reversed);
    EXPECT(same_bits(alone, weighed) && same_bits(alone, derived));
    EXPECT(same_bits(alone.rows[0], turned.rows[1]) && same_bits(alone.rows[1], turned.rows[0]));
    const Weights<Vec<real>> w = held.weights();
    for (int k = 0; k < lanes<real>; ++k) {
        const double a = before.rows[0][k], b = before.rows[1][k];
        const Result expected = plain(a, b);
        EXPECT_NEAR(alone.rows[0][k], expected.lo, nearly<real>);
        EXPECT_NEAR(alone.rows[1][k], expected.hi, nearly<real>);
        EXPECT_NEAR(w.forward.keep[0][k], expected.keep, nearly<real>);
        EXPECT_NEAR(w.forward.swap[0][k], 1 - expected.keep, nearly<real>);
        EXPECT_NEAR(w.gap[0][k], b - a, nearly<real>);
    }
}

TEST(values_and_weights_are_those_of_the_definition) {
    expect_values<float, false>();
    expect_values<float, true>();
    expect_values<double, false>();
    expect_values<double, true>();
}

template <class real, bool careful>
static void expect_derivatives() {
    const Pairs<real> before, grads(5);
    Pairs<real> after = before, through = grads;
    Held<real, Logistic> held;
    run<Logistic, careful>(after, held.derivatives());
    move_gradients<real>(through.rows[0], through.rows[1], held.derivatives().share[0]);
    for (int k = 0; k < lanes<real>; ++k) {
        double a = before.rows[0][k], b = before.rows[1][k], steep = steepness;
        const double lo = grads.rows[0][k], hi = grads.rows[1][k];
        const auto total = [&] {
            const Result of = plain(a, b, steep);
            return lo * of.lo + hi * of.hi;
        };
        EXPECT_NEAR(through.rows[0][k], derivative(a, total), nearly_slope<real>);
        EXPECT_NEAR(through.rows[1][k], derivative(b, total), nearly_slope<real>);
        EXPECT_NEAR((hi - lo) * held.derivatives().steepness[0][k], derivative(steep, total),
                    nearly_slope<real>);
    }
}

TEST(gradients_of_values_go_through_one_share) {
    expect_derivatives<float, false>();
    expect_derivatives<float, true>();
    expect_derivatives<double, false>();
    expect_derivatives<double, true>();
}

template <class real>
static void expect_backward() {
    const Pairs<real> before, grads(3);
    const Vec<real> weight_grad[] = {all(real(0.7))};
    Pairs<real> after = before, through = grads, other = grads;
    Held<real, Logistic> held;
    Vec<real> of_steepness[1];
    run<Logistic, false>(after, held.weights());
    compare_backward<real, Logistic>(1, only, through.rows, weight_grad, all(real(steepness)),
                                     held.weights(), of_steepness);
    compare_backward<real, Logistic>(1, only, other.rows, weight_grad, all(real(steepness)),
                                     held.weights(), nullptr);
    EXPECT(same_bits(through, other));
    for (int k = 0; k < lanes<real>; ++k) {
        double a = before.rows[0][k], b = before.rows[1][k], steep = steepness;
        const auto total = [&] {
            const Result of = plain(a, b, steep);
            return grads.rows[0][k] * of.lo + grads.rows[1][k] * of.hi + 0.7 * of.keep;
        };
        EXPECT_NEAR(through.rows[0][k], derivative(a, total), nearly_slope<real>);
        EXPECT_NEAR(through.rows[1][k], derivative(b, total), nearly_slope<real>);
        EXPECT_NEAR(of_steepness[0][k], derivative(steep, total), nearly_slope<real>);
    }
}

TEST(gradients_of_values_and_weights_together) {
    expect_backward<float>();
    expect_backward<double>();
}

template <class real>
static void expect_infinities() {
    Held<real, Logistic> held, shares;
    Pairs<real> far(INFINITY, 1), derived = far;
    run<Logistic, true>(far, held.weights());
    run<Logistic, true>(derived, shares.derivatives());
    EXPECT(far.rows[0][0] == 1 && far.rows[1][0] == INFINITY && same_bits(far, derived));
    EXPECT(held.weights().forward.keep[0][0] == 0 && held.weights().forward.swap[0][0] == 1);
    EXPECT(held.weights().gap[0][0] == INFINITY);
    EXPECT(shares.derivatives().steepness[0][0] == 0);
    // Gradients change places and nothing else, whatever the gradient of the weight.
    Pairs<real> moved(2, 3), through(2, 3);
    move_gradients<real>(moved.rows[0], moved.rows[1], shares.derivatives().share[0]);
    const Vec<real> weight_grad[] = {all(real(INFINITY))};
    Vec<real> of_steepness[1];
    compare_backward<real, Logistic>(1, only, through.rows, weight_grad, all(real(steepness)),
                                     held.weights(), of_steepness);
    EXPECT(moved.rows[0][0] == 3 && moved.rows[1][0] == 2 && same_bits(moved, through));
    EXPECT(of_steepness[0][0] == 0);
    // Equal infinities stay, with half and half.
    Pairs<real> equal(-INFINITY, -INFINITY);
    run<Logistic, true>(equal, held.weights());
    EXPECT(equal.rows[0][0] == -INFINITY && equal.rows[1][0] == -INFINITY);
    EXPECT(held.weights().forward.keep[0][0] == 0.5 && held.weights().forward.swap[0][0] == 0.5);
    // What is compared with NaN becomes NaN.
    Pairs<real> nan(NAN, 1);
    run<Logistic, true>(nan, held.weights());
    EXPECT(isnan(nan.rows[0][0]) && isnan(nan.rows[1][0]));
    EXPECT(isnan(held.weights().forward.keep[0][0]) && isnan(held.weights().forward.swap[0][0]));
}

TEST(infinities_sort_exactly_and_nan_spreads) {
    expect_infinities<float>();
    expect_infinities<double>();
}

template <class real, bool careful>
static void expect_ties() {
    Held<real, Logistic> held;
    Held<real, Exact> exact;
    Pairs<real> tie(2, 2), of_exact = tie;
    run<Logistic, careful>(tie, held.weights());
    run<Exact, careful>(of_exact, exact.weights());
    EXPECT(tie.rows[0][0] == 2 && tie.rows[1][0] == 2);
    EXPECT(held.weights().forward.keep[0][0] == 0.5);
    EXPECT(exact.weights().forward.keep[0][0] == 1 && exact.weights().forward.swap[0][0] == 0);
    EXPECT(exact.weights().backward.keep[0][0] == 0.5);
}

TEST(a_tie_is_half_and_half_and_keeps_its_places_without_error) {
    expect_ties<float, false>();
    expect_ties<double, true>();
}

template <class real, bool careful>
static void expect_exact() {
    const Pairs<real> before;
    Pairs<real> after = before;
    Held<real, Exact> held;
    run<Exact, careful>(after, held.weights());
    const Weights<Vec<real>> w = held.weights();
    for (int k = 0; k < lanes<real>; ++k) {
        const real a = before.rows[0][k], b = before.rows[1][k];
        EXPECT(after.rows[0][k] == (a < b ? a : b) && after.rows[1][k] == (a < b ? b : a));
        EXPECT(w.forward.keep[0][k] == (a < b) && w.forward.swap[0][k] == (b < a));
        EXPECT_NEAR(w.backward.keep[0][k], plain(a, b).keep, nearly<real>);
    }
    Pairs<real> nan(1, NAN);
    run<Exact, true>(nan, held.weights());
    EXPECT(isnan(nan.rows[0][0]) && isnan(nan.rows[1][0]));
}

TEST(the_error_free_form_has_exact_values_and_relaxed_weights_behind) {
    expect_exact<float, false>();
    expect_exact<double, true>();
}

TEST(two_blocks_are_run_as_one_after_the_other) {
    const Vec<float> steep[] = {all(3.0f), all(5.0f)};
    Pairs<float> both[] = {Pairs<float>(0), Pairs<float>(9)}, each[] = {both[0], both[1]};
    Vec<float> together[9] = {}, apart[9] = {};
    const TwoWires<Logistic> plan;
    compare<float, false, 2>(plan, 1, only, both[0].rows, steep,
                             Derivatives<Vec<float>>{together, nullptr});
    for (int i = 0; i < 2; ++i)
        compare<float, false, 1>(plan, 1, only, each[i].rows, steep + i,
                                 Derivatives<Vec<float>>{apart + i * plan.slots, nullptr});
    EXPECT(same_bits(both, each) && same_bits(together, apart));
}

template <class real>
static bool extreme(double value, double steepness) {
    Vec<real> rows[] = {Vec<real>{}, Vec<real>{}};
    rows[1][lanes<real> - 1] = real(value);
    return are_extreme<Logistic, real>(rows, 2, all(real(steepness)));
}

TEST(values_are_extreme_where_a_difference_may_overflow) {
    for (double value : {0.0, -1.0, 1e30}) EXPECT(!extreme<float>(value, 10));
    for (double value : {double(INFINITY), double(-INFINITY), double(NAN), 3e38, -3e38})
        EXPECT(extreme<float>(value, 1));
    EXPECT(extreme<float>(1e30, 1e10) && !extreme<double>(1e30, 1e10));
    EXPECT(extreme<double>(-INFINITY, 1) && extreme<double>(1e308, 2));
}

TEST(places_by_slot_and_sums_of_parts) {
    EXPECT(weights_per_sample(TwoWires<Logistic>()) == 9);
    EXPECT(weights_per_sample(TwoWires<Exact>()) == 15);
    double values[8];
    const Derivatives<double> both = {values, values + 4}, behind = both.from(3);
    EXPECT(behind.share == values + 3 && behind.steepness == values + 7);
    EXPECT((Derivatives<double>{values, nullptr}.from(3).steepness == nullptr));
    double parts[slot_alignment];
    for (int i = 0; i < slot_alignment; ++i) parts[i] = i + 1;
    EXPECT(sum_of_parts(parts) == slot_alignment * (slot_alignment + 1) / 2);
}
