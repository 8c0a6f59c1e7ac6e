// Vectors: arithmetic on registers, sums over lanes, transposes.
#include "expect.h"

#include <nsc/integers.h>
#include <nsc/numbers.h>
#include <nsc/vectors.h>

using namespace nsc;

// Numbers that differ in every lane, from `first` on.
template <class T>
static Vec<T> counted(int first) {
    Vec<T> row;
    for (int64_t k = 0; k < lanes<T>; ++k) row[k] = T(first + k);
    return row;
}

TEST(bits_are_as_wide_as_the_number) {
    EXPECT(sizeof(Bits<float>) == sizeof(float) && sizeof(Bits<double>) == sizeof(double));
    EXPECT(sizeof(int8_t) == 1 && sizeof(uint16_t) == 2 && sizeof(int32_t) == 4);
    EXPECT(sizeof(uint64_t) == 8 && int8_t(-1) < 0 && uint8_t(-1) > 0);
}

template <class real>
static void expect_arithmetic() {
    const real value = real(2.5);
    EXPECT(same_bits(broadcast(value), all(value)));
    EXPECT(same_bits(from_bits<real>(bits_of<real>(counted<real>(-3))), counted<real>(-3)));
    EXPECT(bits_of<real>(all(real(0)))[0] == 0 && bits_of<real>(all(real(-0.0)))[0] < 0);
    EXPECT(same_bits(converted<real>(counted<Bits<real>>(-2)), counted<real>(-2)));
}

TEST(numbers_their_bits_and_integers) {
    expect_arithmetic<float>();
    expect_arithmetic<double>();
}

template <class real>
static void expect_one_of_two() {
    const Vec<real> up = counted<real>(0), level = all(real(1));
    const Vec<real> less = lesser(up, level), more = greater(up, level);
    for (int64_t k = 0; k < lanes<real>; ++k) {
        EXPECT(less[k] == (k < 1 ? k : 1));
        EXPECT(more[k] == (k > 1 ? k : 1));
    }
    // Where neither is less, the second is taken: of NaN, and of zeros.
    const Vec<real> nan = all(real(NAN)), zero = all(real(0)), minus_zero = all(real(-0.0));
    EXPECT(lesser(nan, level)[0] == 1 && greater(nan, level)[0] == 1);
    EXPECT(isnan(lesser(level, nan)[0]) && isnan(greater(level, nan)[0]));
    EXPECT(signbit(lesser(zero, minus_zero)[0]) && !signbit(greater(minus_zero, zero)[0]));
}

TEST(the_lesser_and_the_greater_of_two) {
    expect_one_of_two<float>();
    expect_one_of_two<double>();
}

TEST(logarithms_are_taken_in_double) {
    EXPECT(sizeof(Log<float>) == sizeof(double));
    const Vec<float> row = counted<float>(-3);
    for (int64_t k = 0; k < lanes<float>; ++k)
        EXPECT(in_doubles<float>(row, k / lanes<double>)[k % lanes<double>] == row[k]);
    EXPECT(in_doubles<double>(all(2.5), 0)[0] == 2.5);
}

TEST(any_lane_that_holds_is_found) {
    Vec<float> row = {};
    EXPECT(!any(row != 0) && any(row == 0));
    for (int64_t k = 0; k < lanes<float>; ++k) {
        row = Vec<float>{}, row[k] = 1;
        EXPECT(any(row != 0));
    }
}

template <class real>
static void expect_sums() {
    constexpr int64_t width = lanes<real>;
    Vec<real> rows[width];
    for (int64_t row = 0; row < width; ++row)
        for (int64_t k = 0; k < width; ++k) rows[row][k] = real((row + 1) * (k * k + 1));
    const Vec<real> sums = row_sums<real>(rows);
    for (int64_t row = 0; row < width; ++row) {
        real sum = 0;
        for (int64_t k = 0; k < width; ++k) sum += rows[row][k];
        EXPECT(sums[row] == sum);
    }
    // Lanes whose numbers differ in the last bit: those of p first, then those of q.
    const Vec<real> folded =
        fold<real, 1>(rows[0], rows[1], typename PlacesTo<lanes<real>>::list());
    for (int64_t k = 0; k < width; ++k) EXPECT(folded[k] == rows[k & 1][k] + rows[k & 1][k ^ 1]);
}

TEST(sums_over_lanes) {
    expect_sums<float>();
    expect_sums<double>();
}

template <class T>
static void expect_transposed() {
    constexpr int64_t width = lanes<T>;
    Vec<T> rows[width], again[width];
    for (int64_t row = 0; row < width; ++row) again[row] = rows[row] = counted<T>(int(100 * row));
    transpose<T>(rows);
    for (int64_t row = 0; row < width; ++row)
        for (int64_t k = 0; k < width; ++k) EXPECT(rows[row][k] == again[k][row]);
    transpose_from<T>(rows);
    EXPECT(same_bits(rows, again));
}

TEST(a_transpose_exchanges_rows_and_lanes) {
    expect_transposed<float>();
    expect_transposed<double>();
    expect_transposed<int32_t>();
    expect_transposed<int16_t>();
}
