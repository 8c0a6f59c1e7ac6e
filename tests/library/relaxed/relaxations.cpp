// Relaxations: tails and their slopes, activation replacements and their elasticities.
#include "networks.h"

#include <nsc/relaxed/relaxations.h>

using namespace nsc;

// The slope is minus the derivative of the tail, which is 1/2 at a tie.
template <class Sigmoid>
static void expect_slope() {
    EXPECT((Sigmoid::template tail<double>(Vec<double>{})[0]) == 0.5);
    EXPECT((Sigmoid::template tail<float>(Vec<float>{})[0]) == 0.5f);
    for (double t : {0.01, 0.2, 0.6, 2.0, 9.0}) {
        const auto tail = [&] { return double(Sigmoid::template tail<double>(all(t))[0]); };
        const double value = tail(), slope = -derivative(t, tail);
        EXPECT_NEAR((Sigmoid::template slope<double>(all(t), all(1 - value), all(value))[0]), slope,
                    1e-9);
        const Vec<float> small = all(float(value)), large = all(float(1 - value));
        EXPECT_NEAR((Sigmoid::template tail<float>(all(float(t)))[0]), value, 1e-7);
        EXPECT_NEAR((Sigmoid::template slope<float>(all(float(t)), large, small)[0]), slope, 1e-6);
    }
    EXPECT(isnan(Sigmoid::template tail<double>(all(double(NAN)))[0]));
}

TEST(slopes_are_derivatives_of_tails) {
    expect_slope<logistic>();
    expect_slope<gaussian>();
    expect_slope<reciprocal>();
    expect_slope<cauchy>();
    expect_slope<optimal>();
}

TEST(tails_are_those_of_their_distributions) {
    for (double t : {0.1, 1.0, 3.0}) {
        const Vec<double> row = all(t);
        EXPECT_NEAR(logistic::tail<double>(row)[0], 1 / (1 + exp(t)), 1e-15);
        EXPECT_NEAR(gaussian::tail<double>(row)[0], erfc(t / sqrt(2)) / 2, 1e-15);
        EXPECT_NEAR(reciprocal::tail<double>(row)[0], 1 / (2 + t), 1e-15);
        EXPECT_NEAR(cauchy::tail<double>(row)[0], atan2(1, t) / acos(-1), 1e-15);
        EXPECT_NEAR(optimal::tail<double>(row)[0], t > 0.25 ? 1 / (16 * t) : 0.5 - t, 1e-15);
    }
}

TEST(the_hard_comparator_has_no_tail_and_no_slope_but_keeps_nan) {
    const Vec<float> row = all(0.5f);
    EXPECT(hard::tail<float>(row)[0] == 0 && hard::slope<float>(row, row, row)[0] == 0);
    EXPECT(isnan(hard::tail<float>(all(float(NAN)))[0]));
}

// phi(d) = d / (d + 1e-10)^lambda, and d phi'(d) / phi(d).
template <class Replacement, class real>
static void expect_replacement(double lambda) {
    for (double size : {0.0, 1e-11, 1e-10, 0.3, 2.0, 1e6}) {
        const double at = size + art_epsilon, of_type = sizeof(real) == 4 ? 2e-6 : 2e-15;
        const Vec<real> row = all(real(size)), stretch = Replacement::template stretch<real>(row);
        EXPECT_NEAR(stretch[0], pow(at, -lambda), of_type * pow(at, -lambda));
        EXPECT_NEAR((Replacement::template elasticity<real>(row, stretch)[0]),
                    1 - lambda * size / at, of_type);
    }
}

struct Third {
    static constexpr double value = 0.3;
};

TEST(replacements_are_powers_that_are_finite_at_ties) {
    expect_replacement<Unchanged, float>(0), expect_replacement<Unchanged, double>(0);
    expect_replacement<Root<2>, float>(0.5), expect_replacement<Root<2>, double>(0.5);
    expect_replacement<Root<4>, float>(0.25), expect_replacement<Root<4>, double>(0.25);
    expect_replacement<Power<Third>, float>(0.3), expect_replacement<Power<Third>, double>(0.3);
    EXPECT(Power<Third>::high * 4096 == rint(0.3 * 4096));
}

TEST(a_relaxation_has_both_parts) {
    using Both = Relaxation<cauchy, Root<4>, true>;
    EXPECT(Both::error_free && !(Relaxation<cauchy, Root<4>, false>::error_free));
    const Vec<double> row = all(0.7);
    EXPECT(same_bits(Both::tail<double>(row), cauchy::tail<double>(row)));
    EXPECT(same_bits(Both::stretch<double>(row), Root<4>::stretch<double>(row)));
}
