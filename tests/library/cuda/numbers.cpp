// Numbers on a GPU: one in the place of a register. The few words of CUDA that the header needs
// stand here.
#include "../expect.h"

#define __device__
static int __float_as_int(float v) {
    int bits;
    return memcpy(&bits, &v, 4), bits;
}
static float __int_as_float(int bits) {
    float v;
    return memcpy(&v, &bits, 4), v;
}
static long long __double_as_longlong(double v) {
    long long bits;
    return memcpy(&bits, &v, 8), bits;
}
static double __longlong_as_double(long long bits) {
    double v;
    return memcpy(&v, &bits, 8), v;
}

#include <nsc/cuda/numbers.h>

using namespace nsc;

template <class real>
static void expect_numbers() {
    EXPECT(sizeof(Vec<real>) == sizeof(real) && all(real(3)) == 3);
    EXPECT(lesser(real(1), real(2)) == 1 && lesser(real(2), real(1)) == 1);
    EXPECT(lesser(real(NAN), real(2)) == 2 && isnan(lesser(real(2), real(NAN))));
    EXPECT(bits_of(real(0)) == 0 && bits_of(real(-0.0)) < 0);
    EXPECT(from_bits<real>(bits_of(real(-2.5))) == real(-2.5));
    EXPECT(converted<real>(Bits<real>(-7)) == -7);
    EXPECT(infinity<real>() == real(INFINITY) && isnan(not_a_number<real>()));
    EXPECT(sizeof(Log<real>) == sizeof(real));
    EXPECT(any(real(1) == 1) && !any(real(1) == 2));
}

TEST(numbers_take_the_place_of_registers) {
    expect_numbers<float>();
    expect_numbers<double>();
}
