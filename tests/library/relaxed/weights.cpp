// Weights: both tails of a comparator, mixes, and where they lie.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/weights.h>

using namespace nsc;

template <class real>
static void expect_weights() {
    const double last_bit = sizeof(real) == 4 ? 0x1p-24 : 0x1p-53;
    for (double v : {0.0, 1e-9, 0.1, 1.0, 7.5, 30.0, 80.0}) {
        const Sigmoid<real> of = sigmoid<Logistic, real>(all(real(v))),
                            mirrored = sigmoid<Logistic, real>(all(real(-v)));
        const real keep = of.keep[0], swap = of.swap[0];
        EXPECT(mirrored.keep[0] == swap && mirrored.swap[0] == keep);
        EXPECT_NEAR(swap, 1 / (1 + exp(v)), swap * last_bit * 8);
        EXPECT_NEAR((long double)(keep) + swap - 1, 0, last_bit);
        EXPECT((sigmoid_slope<Logistic, real>(all(real(-v)), of.keep, of.swap)[0]) == keep * swap);
    }
    const Sigmoid<real> tie = sigmoid<Logistic, real>(Vec<real>{}),
                        far = sigmoid<Logistic, real>(all(real(INFINITY))),
                        nan = sigmoid<Logistic, real>(all(real(NAN)));
    EXPECT(tie.keep[0] == 0.5 && tie.swap[0] == 0.5);
    EXPECT(far.keep[0] == 1 && far.swap[0] == 0);
    EXPECT(isnan(nan.keep[0]) && isnan(nan.swap[0]));
}

TEST(keep_and_swap_sum_to_1_to_the_last_bit) {
    expect_weights<float>();
    expect_weights<double>();
}

// phi(d) = d / (1 + |d|), phi'(d) = 1 / (1 + |d|)^2.
TEST(the_activation_replacement_and_its_derivative_keep_the_sign) {
    for (double d : {-3.0, -0.5, 0.0, 0.25, 8.0}) {
        const Vec<double> row = all(d);
        EXPECT_NEAR((phi<Logistic, double>(row)[0]), d / (1 + fabs(d)), 1e-15);
        EXPECT_NEAR((phi_slope<Logistic, double>(row)[0]), 1 / ((1 + fabs(d)) * (1 + fabs(d))),
                    1e-15);
    }
}

TEST(a_mix_moves_nothing_else) {
    double lo = 3, hi = 5;
    mix(lo, hi, Mix<double>{0.75, 0.25});
    EXPECT(lo == 3.5 && hi == 4.5);
    EXPECT(mixed(Mix<double>{1, 0}, 2.0, 9.0) == 2 && mixed(Mix<double>{0, 1}, 2.0, 9.0) == 9);
}

TEST(a_relaxed_sample_has_three_arrays_and_an_error_free_one_five) {
    double memory[5];
    EXPECT(arrays<Logistic> == 3 && arrays<Exact> == 5);
    const Weights<double> relaxed = weights_at<Logistic>(memory, 1);
    EXPECT(relaxed.forward.keep == memory && relaxed.forward.swap == memory + 1);
    EXPECT(relaxed.backward.keep == memory && relaxed.backward.swap == memory + 1);
    EXPECT(relaxed.gap == memory + 2);
    const Weights<double> exact = weights_at<Exact>(memory, 1);
    EXPECT(exact.forward.keep == memory && exact.forward.swap == memory + 1);
    EXPECT(exact.backward.keep == memory + 2 && exact.backward.swap == memory + 3);
    EXPECT(exact.gap == memory + 4);
}

TEST(weights_from_a_slot_on) {
    double memory[100];
    const Weights<double> all_slots = weights_at<Exact>(memory, 20), behind = all_slots.from(7);
    EXPECT(behind.forward.keep == memory + 7 && behind.forward.swap == memory + 27);
    EXPECT(behind.backward.keep == memory + 47 && behind.backward.swap == memory + 67);
    EXPECT(behind.gap == memory + 87);
}
