// Probabilities: their logarithms, where these are cut, and their derivatives.
#include "../expect.h"
#include "networks.h"

#include <nsc/relaxed/probability.h>

using namespace nsc;

template <class real>
static Probability<real> units(double p) {
    return {all(real(p * unit<double>)), all(real((1 - p) * unit<double>))};
}

template <class real>
static void expect_logarithms() {
    const double relative = sizeof(real) == 4 ? 4e-7 : 1e-15;
    for (double p : {1e-30, 1e-9, 0.2, 0.5, 0.75, 0.76, 0.999}) {
        const double expected = log(p);
        EXPECT_NEAR(log_of(units<real>(p))[0], expected, -expected * relative + relative);
        EXPECT_NEAR((slope_of_log<Logistic, real>(units<real>(p).p)[0]) * unit<double>, 1 / p,
                    relative / p);
    }
    // Of a large probability the rest is read, which has all digits.
    const Probability<real> sure = {all(unit<real>), all(real(1e-20) * unit<real>)};
    EXPECT_NEAR(log_of(sure)[0], -1e-20, 1e-26);
    EXPECT(log_of(units<real>(1))[0] == 0);
    EXPECT(isnan(log_of(units<real>(NAN))[0]));
    // Below e^-80 logarithms are -80 and have no slope.
    for (double p : {0.0, exp(-80.001), exp(-90.0)}) {
        EXPECT(log_of(units<real>(p))[0] == -80);
        EXPECT((slope_of_log<Logistic, real>(units<real>(p).p)[0]) == 0);
    }
    const double above = exp(-79.99);
    EXPECT_NEAR(log_of(units<real>(above))[0], -79.99, 1e-5);
    EXPECT((slope_of_log<Logistic, real>(units<real>(above).p)[0]) > 0);
}

TEST(logarithms_are_cut_at_the_least_probability) {
    expect_logarithms<float>();
    expect_logarithms<double>();
    EXPECT(lowest_log == -80);
    EXPECT_NEAR(least_probability<double> / unit<double>, exp(-80.0), 1e-48);
    EXPECT(float(least_probability<double>) == least_probability<float>);
}

TEST(the_surrogate_of_the_error_free_form_has_a_slope_at_0) {
    EXPECT_NEAR((slope_of_log<Exact, double>(all(0.0))[0]) * unit<double>, 1e12, 1);
    EXPECT_NEAR((slope_of_log<Exact, double>(all(unit<double>))[0]) * unit<double>, 1, 1e-15);
    EXPECT_NEAR((slope_of_log<Exact, float>(all(0.0f))[0]) * unit<double>, 1e12, 1e6);
}

TEST(a_complement_changes_places_and_large_is_above_three_quarters) {
    const Probability<float> of = complement(Probability<float>{all(1.0f), all(2.0f)});
    EXPECT(of.p[0] == 2 && of.rest[0] == 1);
    const auto large = [](float p) { return any(is_large<float>(all(p))); };
    EXPECT(!large(0.75f * unit<float>) && large(0.7500001f * unit<float>) && !large(NAN));
}
