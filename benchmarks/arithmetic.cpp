// Only the arithmetic of relaxed comparators on registers, at the rate that the processor sustains.
//
// Several comparators are in flight, each on rows of its own, so that none waits for another's result. The rows that are
// mixed stay in registers from the first repeat to the last, and so do the sums of the weights' gradients. From the
// first-level cache come the weights, and in the backward pass the rows of the payload.
//
// Both forms of a mix whose small results keep their digits are here. Four operations: two products and two fused
// sums, α a + β b and β a + α b. Three and a selection: u = a + t (b - a) and v = b - t (b - a) with the smaller weight
// t, and u and v change places where t is α.

#include <stdint.h>

#if defined(__AVX512F__)
constexpr int register_bytes = 64;
#elif defined(__AVX__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif

typedef float Vec __attribute__((vector_size(register_bytes)));
typedef int32_t Mask __attribute__((vector_size(register_bytes)));

// Two units for products begin five mixes of four operations in ten cycles; the result of the first is there after
// eight. Ten rows leave some of 16 registers to weights and differences.
constexpr int comparators = 5;

// Weights are 0 and 1: values move but never shrink to subnormals, whose arithmetic is slow.
struct Weight {
    float keep, swap, least;
    int32_t swapped;  // all bits, where keep is the smaller one
};
Weight weights[comparators];
Vec values[2 * comparators], payload[2 * comparators], weight_grads[comparators];

#define INLINE inline __attribute__((always_inline))

struct Four {
    static INLINE void mix(Vec &lo, Vec &hi, const Weight &weight) {
        const Vec a = lo, b = hi;
        lo = weight.keep * a + weight.swap * b;
        hi = weight.swap * a + weight.keep * b;
    }
    static INLINE void mix_summing(Vec &lo, Vec &hi, const Weight &weight, Vec difference, Vec &sum) {
        sum += difference * (lo - hi);
        mix(lo, hi, weight);
    }
};

struct Three {
    static INLINE void mix(Vec &lo, Vec &hi, Vec difference, const Weight &weight) {
        const Vec u = lo - weight.least * difference, v = hi + weight.least * difference;
        const Mask swapped = Mask{} + weight.swapped;
        lo = swapped ? v : u;
        hi = swapped ? u : v;
    }
    static INLINE void mix(Vec &lo, Vec &hi, const Weight &weight) { mix(lo, hi, lo - hi, weight); }
    static INLINE void mix_summing(Vec &lo, Vec &hi, const Weight &weight, Vec difference, Vec &sum) {
        const Vec own = lo - hi;
        sum += difference * own;
        mix(lo, hi, own, weight);
    }
};

template <class Form, int c = 0>
INLINE void forward(Vec *row) {
    if constexpr (c < comparators) {
        Form::mix(row[2 * c], row[2 * c + 1], weights[c]);
        forward<Form, c + 1>(row);
    }
}

template <class Form, int c = 0>
INLINE void backward(Vec *row, Vec *sum) {
    if constexpr (c < comparators) {
        Form::mix_summing(row[2 * c], row[2 * c + 1], weights[c], payload[2 * c] - payload[2 * c + 1], sum[c]);
        backward<Form, c + 1>(row, sum);
    }
}

template <int size, int i = 0>
INLINE void copy(Vec *to, const Vec *from) {
    if constexpr (i < size) {
        to[i] = from[i];
        copy<size, i + 1>(to, from);
    }
}

// Makes the compiler load from and store to memory anew, instead of keeping the values in registers.
INLINE void forget() { __asm__ volatile("" ::: "memory"); }

template <class Form>
INLINE void run_forward(int64_t repeats) {
    Vec row[2 * comparators];
    copy<2 * comparators>(row, values);
    for (int64_t i = 0; i < repeats; ++i) {
        forget();
        forward<Form>(row);
    }
    copy<2 * comparators>(values, row);
}

template <class Form>
INLINE void run_backward(int64_t repeats) {
    Vec row[2 * comparators], sum[comparators];
    copy<2 * comparators>(row, values);
    copy<comparators>(sum, weight_grads);
    for (int64_t i = 0; i < repeats; ++i) {
        forget();
        backward<Form>(row, sum);
    }
    copy<2 * comparators>(values, row);
    copy<comparators>(weight_grads, sum);
}

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const int32_t lane_count = register_bytes / sizeof(float), comparator_count = comparators;

EXPORTED void prepare() {
    for (int c = 0; c < comparators; ++c) {
        const bool is_kept = c % 2 == 0;
        weights[c] = {float(is_kept), float(!is_kept), 0, is_kept ? 0 : -1};
        values[2 * c] = payload[2 * c] = Vec{} + 1, values[2 * c + 1] = payload[2 * c + 1] = Vec{} + 2;
        weight_grads[c] = Vec{};
    }
}

EXPORTED void forward_four(int64_t repeats) { run_forward<Four>(repeats); }
EXPORTED void forward_three(int64_t repeats) { run_forward<Three>(repeats); }
EXPORTED void backward_four(int64_t repeats) { run_backward<Four>(repeats); }
EXPORTED void backward_three(int64_t repeats) { run_backward<Three>(repeats); }

// As many cycles as repeats: each operation waits for the one before it.
EXPORTED void cycles(int64_t repeats) {
    uint64_t x = 1, y = uint64_t(repeats) | 1;
    for (int64_t i = 0; i < repeats; i += 8) {
#define STEP __asm__ volatile("" : "+r"(x)); x ^= y;
        STEP STEP STEP STEP STEP STEP STEP STEP
#undef STEP
    }
    __asm__ volatile("" : "+r"(x));
}
