// Only the arithmetic of relaxed comparators: butterflies of vectors that stay in registers.
//
// A comparator mixes two vectors, a column of P in each lane. It reads from memory only what every kernel reads:
// weights, broadcast from the first-level cache, and in the backward pass the differences that the forward kept there.

#include <stdint.h>

#if defined(__AVX512F__)
constexpr int register_bytes = 64, registers = 32;
#elif defined(__AVX__)
constexpr int register_bytes = 32, registers = 16;
#elif defined(__aarch64__)
constexpr int register_bytes = 16, registers = 32;
#else
constexpr int register_bytes = 16, registers = 16;
#endif

typedef float Vec __attribute__((vector_size(register_bytes)));

// Half of the registers hold rows, the others are for the arithmetic: 16 rows and 4 layers, or 8 rows and 3.
constexpr int rows = registers / 2, layers = rows == 16 ? 4 : 3, pairs = rows / 2, comparators = layers * pairs;

constexpr int distance(int c) { return rows >> (c / pairs + 1); }
constexpr int lo(int c) { return c % pairs / distance(c) * 2 * distance(c) + c % pairs % distance(c); }
constexpr int hi(int c) { return lo(c) + distance(c); }

// Weights are 0 and 1: values move but never shrink to subnormals, whose arithmetic is slow.
struct Weight {
    float keep, swap;
};
Weight weights[comparators];
Vec values[rows], gradients[rows], products[comparators];

#define INLINE inline __attribute__((always_inline))

INLINE void mix(Vec &lo, Vec &hi, Weight weight) {
    const Vec a = lo, b = hi;
    lo = weight.keep * a + weight.swap * b;
    hi = weight.swap * a + weight.keep * b;
}

template <int c = 0>
INLINE void forward(Vec *row) {
    if constexpr (c < comparators) {
        mix(row[lo(c)], row[hi(c)], weights[c]);
        forward<c + 1>(row);
    }
}

template <int c = 0>
INLINE void forward_again(Vec *row) {
    if constexpr (c < comparators) {
        products[c] = row[lo(c)] - row[hi(c)];
        mix(row[lo(c)], row[hi(c)], weights[c]);
        forward_again<c + 1>(row);
    }
}

template <int c = comparators - 1>
INLINE void backward(Vec *row) {
    if constexpr (c >= 0) {
        products[c] *= row[lo(c)] - row[hi(c)];
        mix(row[lo(c)], row[hi(c)], weights[c]);
        backward<c - 1>(row);
    }
}

template <int i = 0>
INLINE void copy(Vec *to, const Vec *from) {
    if constexpr (i < rows) {
        to[i] = from[i];
        copy<i + 1>(to, from);
    }
}

// Makes the compiler load from and store to memory anew, instead of keeping the values in registers.
INLINE void forget() { __asm__ volatile("" ::: "memory"); }

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const int32_t lane_count = register_bytes / sizeof(float), comparator_count = comparators;

EXPORTED void prepare() {
    for (int c = 0; c < comparators; ++c) weights[c] = {float(c % 2), float(1 - c % 2)};
    for (int i = 0; i < rows; ++i) values[i] = Vec{} + float(1 + i), gradients[i] = Vec{} + float(rows - i);
}

// Forward: rows stay in registers from the first repeat to the last.
EXPORTED void run_forward(int64_t repeats) {
    Vec row[rows];
    copy(row, values);
    for (int64_t i = 0; i < repeats; ++i) {
        forget();
        forward(row);
    }
    copy(values, row);
}

// Backward: forward again, keeping the differences; then the gradients through the same mixes in reverse (a mix is
// its own transpose), with the products of both differences.
EXPORTED void run_backward(int64_t repeats) {
    Vec row[rows];
    for (int64_t i = 0; i < repeats; ++i) {
        forget();
        copy(row, values);
        forward_again(row);
        forget();
        copy(row, gradients);
        backward(row);
        copy(gradients, row);
    }
}
