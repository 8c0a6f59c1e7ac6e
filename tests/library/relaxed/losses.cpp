// Losses: the loss of an entry, its slope, and its part of the mean.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/losses.h>

using namespace nsc;

template <class real>
static Probability<real> units(double p) {
    return {all(real(p * unit<double>)), all(real((1 - p) * unit<double>))};
}

template <class Loss, class real>
static double loss(double p, double share) {
    return mean_loss<Loss>(units<real>(p), all(real(share)))[0];
}

template <class Loss, class real>
static double slope(double p, double share) {
    return unit<double> * mean_slope<Loss, Logistic>(units<real>(p), all(real(share)))[0];
}

template <class real>
static void expect_losses() {
    for (double p : {0.1, 0.5, 0.9})
        for (double share : {0.0, 0.25, 1.0}) {
            const double rest = 1 - share;
            EXPECT_NEAR((loss<cross_entropy, real>(p, share)), -share * log(p), 1e-6);
            EXPECT_NEAR((slope<cross_entropy, real>(p, share)), -share / p, 1e-5);
            EXPECT_NEAR((loss<binary_cross_entropy, real>(p, share)),
                        -share * log(p) - rest * log(1 - p), 1e-6);
            EXPECT_NEAR((slope<binary_cross_entropy, real>(p, share)), -share / p + rest / (1 - p),
                        1e-5);
            EXPECT_NEAR(share_slope<cross_entropy>(units<real>(p))[0], -log(p), 1e-6);
            EXPECT_NEAR(share_slope<binary_cross_entropy>(units<real>(p))[0], log(1 - p) - log(p),
                        1e-6);
        }
}

TEST(losses_and_their_slopes) {
    expect_losses<float>();
    expect_losses<double>();
}

TEST(an_impossible_truth_costs_80_and_pulls_nothing) {
    EXPECT((loss<cross_entropy, float>(0, 1)) == 80);
    EXPECT((slope<cross_entropy, float>(0, 1)) == 0);
    EXPECT((loss<binary_cross_entropy, double>(1, 0)) == 80);
    EXPECT((slope<binary_cross_entropy, double>(1, 0)) == 0);
}

// A mean over items has n of them, one over all of P n^2.
TEST(weights_of_entries) {
    EXPECT(cross_entropy::of_truth && !binary_cross_entropy::of_truth);
    EXPECT(entry_weight<cross_entropy>(0.25, 4) == 0.25);
    EXPECT(entry_weight<binary_cross_entropy>(0.25, 4) == 0.0625);
}

template <class Loss>
static void expect_slopes() {
    const double step = 1e-6;
    for (double p : {0.1, 0.5, 0.9})
        for (double share : {0.0, 0.25, 1.0}) {
            const double difference =
                loss<Loss, double>(p + step, share) - loss<Loss, double>(p - step, share);
            EXPECT_NEAR((slope<Loss, double>(p, share)), difference / (2 * step), 1e-5);
            EXPECT_NEAR(share_slope<Loss>(units<double>(p))[0],
                        (loss<Loss, double>(p, 1)) - (loss<Loss, double>(p, 0)), 1e-6);
        }
}

TEST(slopes_of_all_losses_are_derivatives) {
#define NSC_SLOPES(name) expect_slopes<name>();
    NSC_LOSSES(NSC_SLOPES)
#undef NSC_SLOPES
}
