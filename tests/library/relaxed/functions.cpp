// Functions: within 4 units in the last place of what they stand for, tails included.
#include "../expect.h"

#include <nsc/relaxed/functions.h>

using namespace nsc;

// What the C library computes in long double, with more digits than a double.
static long double logistic(long double t) { return expl(-t) / (1 + expl(-t)); }
static long double normal(long double t) { return erfcl(t * sqrtl(0.5L)) / 2; }
static long double cauchy(long double t) { return atan2l(1, t) / acosl(-1); }
static long double half_square(long double t) { return 3 * expl(-t * t / 2); }

// The distance in units in the last place of the type.
template <class real>
static double units_apart(real found, long double expected) {
    int exponent;
    frexpl(expected, &exponent);
    const int digits = sizeof(real) == 4 ? 24 : 53;
    return double(fabsl(found - expected) / ldexpl(1, exponent - digits));
}

static long double log_1p(long double x) { return log1pl(x); }

// Points from 0 to `end`, dense near 0.
constexpr int points = 400;
static double point(int i, double end) { return end * i * i / (points * points); }

template <class real>
static void expect_units(Vec<real> (*function)(Vec<real>), long double (*exact)(long double),
                         double end) {
    for (int i = 0; i <= points; ++i) {
        const real t = real(point(i, end));
        const double apart = units_apart<real>(function(all(t))[0], exact(t));
        EXPECT_NEAR(apart, 0, 4);
    }
}

template <class real>
static Vec<real> thrice_half_square(Vec<real> t) {
    return exp_half_square<real>(t, all(real(3)));
}

TEST(tails_are_right_as_far_as_they_are_normal_numbers) {
    expect_units<float>(logistic_tail<float>, logistic, 87);
    expect_units<double>(logistic_tail<double>, logistic, 708);
    expect_units<float>(normal_tail<float>, normal, 12.8);
    expect_units<double>(normal_tail<double>, normal, 37.4);
    expect_units<float>(cauchy_tail<float>, cauchy, 1e6);
    expect_units<double>(cauchy_tail<double>, cauchy, 1e9);
    expect_units<float>(thrice_half_square<float>, half_square, 13);
    expect_units<double>(thrice_half_square<double>, half_square, 37);
}

template <class real>
static void expect_ends() {
    const Vec<real> zero = {}, infinite = all(real(INFINITY)), nan = all(real(NAN));
    EXPECT(logistic_tail<real>(zero)[0] == 0.5 && normal_tail<real>(zero)[0] == 0.5);
    EXPECT(cauchy_tail<real>(zero)[0] == 0.5 && cauchy_tail<real>(infinite)[0] == 0);
    EXPECT(logistic_tail<real>(infinite)[0] == 0 && normal_tail<real>(infinite)[0] == 0);
    EXPECT(exp_half_square<real>(infinite, all(real(1)))[0] == 0);
    EXPECT(logistic_tail<real>(all(real(2000)))[0] == 0 &&
           normal_tail<real>(all(real(64)))[0] == 0);
    EXPECT(isnan(logistic_tail<real>(nan)[0]) && isnan(normal_tail<real>(nan)[0]));
    EXPECT(isnan(cauchy_tail<real>(nan)[0]) && isnan(exp_half_square<real>(nan, nan)[0]));
}

TEST(tails_of_0_infinity_and_nan) {
    expect_ends<float>();
    expect_ends<double>();
}

template <class real>
static void expect_roots() {
    const int most = Constants<real>::exponent_bias;
    for (int exponent = most; exponent >= -100; exponent -= 3)
        for (double scale : {1.0, 1.1, 1.5, 1.9}) {
            const real x = real(ldexp(scale, exponent));
            EXPECT_NEAR(units_apart<real>(inverse_root<2, real>(all(x))[0], 1 / sqrtl(x)), 0, 4);
            EXPECT_NEAR(units_apart<real>(inverse_root<4, real>(all(x))[0], 1 / sqrtl(sqrtl(x))), 0,
                        4);
        }
}

TEST(inverse_roots_are_right_at_every_exponent) {
    expect_roots<float>();
    expect_roots<double>();
}

// A power comes in two parts, the first of few bits.
template <class real>
static void expect_powers(double power) {
    const real lambda = real(power), high = real(float(ldexp(rint(ldexp(power, 8)), -8))),
               low = real((long double)(lambda)-high);
    for (int exponent = -60; exponent <= 60; exponent += 7)
        for (double scale : {1.0, 1.3, 1.42, 1.8}) {
            const real x = real(ldexp(scale, exponent));
            const real found = inverse_power<real>(all(x), lambda, high, low)[0];
            EXPECT_NEAR(units_apart<real>(found, powl(x, -(long double)lambda)), 0, 4);
        }
}

TEST(inverse_powers_are_right_at_every_exponent) {
    for (double power : {0.1, 0.3, 0.75, 1.0}) expect_powers<float>(power);
    for (double power : {0.1, 0.3, 0.75, 1.0}) expect_powers<double>(power);
}

template <class real>
static void expect_logarithms() {
    for (int i = 0; i <= 100 * points; ++i) {
        const real x = real(expl(-85 + 90.0L * i / (100 * points)));
        EXPECT_NEAR((units_apart<real>(logarithm<real>(all(x))[0], logl(x))), 0, 4);
    }
    expect_units<real>(logarithm_1p<real>, log_1p, 0.25);
    expect_units<real>(logarithm_1p<real>, log_1p, -0.25);
    for (real x : {real(1e-30), real(-1e-30), real(0x1p-10), real(-0x1p-10)})
        EXPECT_NEAR((units_apart<real>(logarithm_1p<real>(all(x))[0], log1pl(x))), 0, 4);
    EXPECT(logarithm<real>(all(real(1)))[0] == 0 && logarithm_1p<real>(Vec<real>{})[0] == 0);
    EXPECT(isnan(logarithm<real>(all(real(NAN)))[0]) &&
           isnan(logarithm_1p<real>(all(real(NAN)))[0]));
    // A lane does not depend on its neighbours.
    Vec<real> mixed = all(real(0.2));
    mixed[0] = real(1e-6);
    EXPECT(logarithm_1p<real>(mixed)[0] == logarithm_1p<real>(all(mixed[0]))[0]);
    EXPECT(logarithm_1p<real>(mixed)[1] == logarithm_1p<real>(all(mixed[1]))[0]);
}

TEST(logarithms_are_right_at_every_exponent) {
    expect_logarithms<float>();
    expect_logarithms<double>();
}

template <class real>
static void expect_parts() {
    const Vec<real> r = all(real(0.3));
    EXPECT_NEAR(units_apart<real>(small_exp<real>(r)[0], expl(r[0])), 0, 2);
    EXPECT_NEAR(units_apart<real>(small_exp_less_1<real>(r)[0], expm1l(r[0])), 0, 2);
    EXPECT(power_of_two<real>(all(Constants<real>::rounding + real(-5)))[0] == real(1) / 32);
    EXPECT(magnitude<real>(all(real(-2)))[0] == 2 && !signbit(magnitude<real>(all(real(-0.0)))[0]));
    EXPECT((sum_of(Polynomial<real, 3>{{1, 2, 3}}, all(real(2)))[0] == 17));
    EXPECT(within_exp<real>(all(real(3)))[0] == 3 && isnan(within_exp<real>(all(real(NAN)))[0]));
    EXPECT(power_of<2>(real(3)) == 9 && power_of<4>(real(3)) == 81);
}

TEST(the_parts_of_functions) {
    expect_parts<float>();
    expect_parts<double>();
}
