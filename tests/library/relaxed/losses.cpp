// Losses: the loss of an entry, its slope, and its part of the mean.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/losses.h>

using namespace nsc;

template <class real>
static Probability<real> units(double p) {
    return {real(p * unit<double>), real((1 - p) * unit<double>)};
}

template <class Loss, class real>
static double loss(double p, bool is_true) {
    return Loss::template of<real>(units<real>(p), is_true);
}

template <class Loss, class real>
static double slope(double p, bool is_true) {
    return unit<double> * Loss::template slope<Logistic, real>(units<real>(p), is_true);
}

template <class real>
static void expect_losses() {
    for (double p : {0.1, 0.5, 0.9}) {
        EXPECT_NEAR((loss<cross_entropy, real>(p, true)), -log(p), 1e-6);
        EXPECT_NEAR((loss<binary_cross_entropy, real>(p, true)), -log(p), 1e-6);
        EXPECT_NEAR((loss<binary_cross_entropy, real>(p, false)), -log(1 - p), 1e-6);
        EXPECT_NEAR((slope<cross_entropy, real>(p, true)), -1 / p, 1e-5);
        EXPECT_NEAR((slope<binary_cross_entropy, real>(p, true)), -1 / p, 1e-5);
        EXPECT_NEAR((slope<binary_cross_entropy, real>(p, false)), 1 / (1 - p), 1e-5);
    }
}

TEST(losses_and_their_slopes) {
    expect_losses<float>();
    expect_losses<double>();
}

TEST(an_impossible_truth_costs_80_and_pulls_nothing) {
    EXPECT((loss<cross_entropy, float>(0, true)) == 80);
    EXPECT((slope<cross_entropy, float>(0, true)) == 0);
    EXPECT((loss<binary_cross_entropy, double>(1, false)) == 80);
    EXPECT((slope<binary_cross_entropy, double>(1, false)) == 0);
}

// A mean over columns has n entries, one over all of P n^2.
TEST(parts_of_means) {
    EXPECT(cross_entropy::at_truth_alone && !binary_cross_entropy::at_truth_alone);
    EXPECT(mean_part<cross_entropy>(6, 4) == 1.5);
    EXPECT(mean_part<binary_cross_entropy>(8, 4) == 0.5);
    EXPECT((mean_share<cross_entropy, float>(4)) == 0.25f);
    EXPECT((mean_share<binary_cross_entropy, double>(4)) == 0.0625);
}

TEST(the_list_has_each_loss_once) {
#define NSC_COUNT(name) +name::at_truth_alone * 10 + 1
    EXPECT(0 NSC_LOSSES(NSC_COUNT) == 12);
#undef NSC_COUNT
}
