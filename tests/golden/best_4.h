/* four.h: exact sorting of 4 values, for C11, C++11 and later.
 *
 * Made by: nsc emit c best --n 4 --name four --dtype float64
 * nsc:     0
 * Network: 4 wires, 5 comparators, 3 layers, sha256 48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4
 * Proof:   sorts every input, by exhaustion: all 2^4 0-1 inputs come out sorted
 * Licence: MIT, Copyright (c) 2026 The nsc authors
 * SPDX-License-Identifier: MIT
 *
 * A sample is 4 values.
 * Its results are all values, the smallest first.
 *
 *   four_TYPE(x, values)
 *       One sample: value w is x[w], result r is values[r].
 *   four_rows_TYPE(x, count, stride, values)
 *       `count` samples: value w of sample s is x[s * stride + w], its result r is values[s * 4 + r].
 *   four_columns_TYPE(x, count, stride, values, values_stride)
 *       `count` samples: value w of sample s is x[w * stride + s], its result r is values[r * values_stride + s].
 *   four_indices_TYPE, four_rows_indices_TYPE, four_columns_indices_TYPE
 *       The same with one more argument at the end: `indices`, laid out as `values`, get the place of each result in
 *       its sample, from 0.
 *
 * TYPE is one of float64.
 *
 * Memory: strides count values. Samples must not overlap. `values` may be `x`, if the strides are the same: all of a
 * sample is read before its results are written. Otherwise no two arrays may overlap. A call takes about
 * 164 bytes of stack at most for one sample, 2 KB for more, and no other memory.
 *
 * Order: with indices equal values keep their order, the later one is the larger, and -0 equals 0. Without, -0 is less
 * than 0, and NaN loses its sign. NaN is larger than every number; with indices it loses its payload.
 *
 * Time: no branch and no address is written that depends on a value. nsc's tests trace the object code of integer types
 * for x86-64, from gcc at -O1, -O2 and -O3 and from clang at -O2: the same instructions run for all values. Another
 * compiler, or another place where a function is inlined, may make branches of comparisons: look at your object code.
 *
 * Speed: batches run in vectors where the compiler makes them: gcc -O3, clang -O2, best with -march=native.
 */

#ifndef NSC_four_H
#define NSC_four_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus) && __cplusplus >= 202002L
#define NSC_CONSTEXPR constexpr
#define NSC_AT_RUN_TIME if (!__builtin_is_constant_evaluated())
#define NSC_COPY(to, from) to = __builtin_bit_cast(decltype(to), from)
#else
#define NSC_AT_RUN_TIME
#define NSC_CONSTEXPR
#if defined(__GNUC__)
#define NSC_COPY(to, from) __builtin_memcpy(&to, &from, sizeof to)
#else
#define NSC_COPY(to, from) \
    for (size_t k = 0; k < sizeof to; ++k) ((unsigned char *)&to)[k] = ((const unsigned char *)&from)[k]
#endif
#endif
#define NSC_FUNCTION static inline NSC_CONSTEXPR
#if defined(__GNUC__)
#define NSC_INLINE NSC_FUNCTION __attribute__((always_inline))
#else
#define NSC_INLINE NSC_FUNCTION
#endif
#if defined(__GNUC__) || defined(_MSC_VER)
#define NSC_RESTRICT __restrict
#else
#define NSC_RESTRICT
#endif

/* ------------------------------------------------------------------------------------------------------- network */

/* The comparators (lo, hi) in order: the smaller of two numbers goes to wire lo. */
#define NSC_COMPARATORS(C) \
    C(0, 2) C(1, 3) C(0, 1) C(2, 3) C(1, 2)

/* The wires that samples enter on. */
#define NSC_INPUTS(C) \
    C(0) C(1) C(2) C(3)

/* Each result with its wire. */
#define NSC_OUTPUTS(C) \
    C(0, 0) C(1, 1) C(2, 2) C(3, 3)

NSC_INLINE void four_order_int64(int64_t *lo, int64_t *hi) {
    const int64_t a = *lo, b = *hi;
    *lo = b < a ? b : a;
    *hi = b < a ? a : b;
}

/* The key of a value of 64 bits, and where it was. */
typedef struct {
    uint64_t key, place;
} four_pair;

NSC_INLINE void four_order_pair(four_pair *lo, four_pair *hi, int is_alone) {
    const unsigned is_less = hi->key < lo->key, is_equal = hi->key == lo->key, is_before = hi->place < lo->place;
    uint64_t mask = (uint64_t)0 - (is_less | (is_equal & is_before));
#if defined(__GNUC__)
    /* Outside of vectors clang would make a branch of it. */
    if (is_alone) NSC_AT_RUN_TIME __asm__("" : "+r"(mask));
#else
    (void)is_alone;
#endif
    const uint64_t key = (lo->key ^ hi->key) & mask, place = (lo->place ^ hi->place) & mask;
    lo->key ^= key;
    hi->key ^= key;
    lo->place ^= place;
    hi->place ^= place;
}

/* ----------------------------------------------------------------------------------- float64 */

NSC_INLINE uint64_t four_bits_float64(double x) {
    uint64_t bits;
    NSC_COPY(bits, x);
    return bits;
}

NSC_INLINE double four_from_bits_float64(uint64_t bits) {
    double x;
    NSC_COPY(x, bits);
    return x;
}

/* A key is a whole number in the order of the values. Of a negative number all bits but the sign are turned. */
NSC_INLINE uint64_t four_turned_float64(uint64_t bits) {
    return bits ^ (((uint64_t)0 - (bits >> 63)) >> 1);
}

NSC_INLINE int64_t four_key_float64(double x) {
    const uint64_t bits = four_bits_float64(x), size = bits & UINT64_C(0x7fffffffffffffff);
    return (int64_t)four_turned_float64(size > UINT64_C(0x7ff0000000000000) ? size : bits);
}

NSC_INLINE double four_value_float64(int64_t key) {
    return four_from_bits_float64(four_turned_float64((uint64_t)key));
}

/* -0 equals 0, and NaN equals NaN; the lowest bit of an item keeps their sign. */
NSC_INLINE four_pair four_item_float64(double x, uint32_t index) {
    const uint64_t bits = four_bits_float64(x), size = bits & UINT64_C(0x7fffffffffffffff);
    const uint64_t is_nan = size > UINT64_C(0x7ff0000000000000), is_tied = is_nan | (size == 0);
    const uint64_t same = (size & (is_nan - 1)) | ((uint64_t)0 - is_nan) >> 1;
    const uint64_t key = four_turned_float64(same | (bits & (is_tied - 1))) ^ UINT64_C(0x8000000000000000);
    const uint64_t place = (uint64_t)index << 1 | (is_tied & bits >> 63);
    const four_pair item = {key, place};
    return item;
}

NSC_INLINE uint32_t four_index_float64(four_pair item) {
    return (uint32_t)(item.place >> 1);
}

NSC_INLINE double four_item_value_float64(four_pair item) {
    const uint64_t key = (uint64_t)((uint64_t)item.key ^ UINT64_C(0x8000000000000000));
    const uint64_t sign = (uint64_t)(item.place & 1) << 63;
    return four_from_bits_float64(four_turned_float64(key) | sign);
}

/* Turn 8 rows to columns. */
NSC_FUNCTION void four_turn_float64(const double *x, size_t stride, double *NSC_RESTRICT block) {
    for (size_t lane = 0; lane < 8; ++lane)
        for (size_t wire = 0; wire < 4; ++wire)
            block[wire * 8 + lane] = x[lane * stride + wire];
}

/* Sort `lanes` samples: value w of sample s is x[w * stride + s]. All are read before results are written. */
NSC_INLINE void four_run_float64(const double *x, size_t stride, double *values,
    size_t values_stride, size_t lanes) {
    for (size_t lane = 0; lane < lanes; ++lane) {
        int64_t w[4];
#define NSC_INPUT(wire) w[wire] = four_key_float64(x[wire * stride + lane]);
#define NSC_ORDER(lo, hi) four_order_int64(&w[lo], &w[hi]);
#define NSC_OUTPUT(result, wire) \
    values[result * values_stride + lane] = four_value_float64(w[wire]);
        NSC_INPUTS(NSC_INPUT)
        NSC_COMPARATORS(NSC_ORDER)
        NSC_OUTPUTS(NSC_OUTPUT)
#undef NSC_INPUT
#undef NSC_ORDER
#undef NSC_OUTPUT
    }
}

/* 8 samples at a time, which compilers make vectors of. */
NSC_FUNCTION void four_lanes_float64(const double *x, size_t stride,
    double *NSC_RESTRICT values) {
    four_run_float64(x, stride, values, 8, 8);
}

NSC_FUNCTION void four_float64(const double *x, double *values) {
    four_run_float64(x, 1, values, 1, 1);
}

NSC_FUNCTION void four_columns_float64(const double *x, size_t count, size_t stride,
    double *values, size_t values_stride) {
    double block[4 * 8];
    const size_t whole = count - count % 8;
    for (size_t s = 0; s < whole; s += 8) {
        four_lanes_float64(x + s, stride, block);
        for (size_t result = 0; result < 4; ++result)
            for (size_t lane = 0; lane < 8; ++lane) {
                values[result * values_stride + s + lane] = block[result * 8 + lane];
            }
    }
    for (size_t s = whole; s < count; ++s)
        four_run_float64(x + s, stride, values + s, values_stride, 1);
}

NSC_FUNCTION void four_rows_float64(const double *x, size_t count, size_t stride,
    double *values) {
    double in[4 * 8], block[4 * 8];
    const size_t whole = count - count % 8;
    for (size_t s = 0; s < whole; s += 8) {
        four_turn_float64(x + s * stride, stride, in);
        four_lanes_float64(in, 8, block);
        for (size_t lane = 0; lane < 8; ++lane)
            for (size_t result = 0; result < 4; ++result) {
                values[(s + lane) * 4 + result] = block[result * 8 + lane];
            }
    }
    for (size_t s = whole; s < count; ++s)
        four_float64(x + s * stride, values + s * 4);
}

/* Sort `lanes` samples: value w of sample s is x[w * stride + s]. All are read before results are written. */
NSC_INLINE void four_run_indices_float64(const double *x, size_t stride, double *values,
    size_t values_stride, uint32_t *indices, size_t lanes) {
    for (size_t lane = 0; lane < lanes; ++lane) {
        four_pair w[4];
#define NSC_INPUT(wire) w[wire] = four_item_float64(x[wire * stride + lane], (uint32_t)wire);
#define NSC_ORDER(lo, hi) four_order_pair(&w[lo], &w[hi], lanes == 1);
#define NSC_OUTPUT(result, wire) \
    indices[result * values_stride + lane] = four_index_float64(w[wire]); \
    values[result * values_stride + lane] = four_item_value_float64(w[wire]);
        NSC_INPUTS(NSC_INPUT)
        NSC_COMPARATORS(NSC_ORDER)
        NSC_OUTPUTS(NSC_OUTPUT)
#undef NSC_INPUT
#undef NSC_ORDER
#undef NSC_OUTPUT
    }
}

/* 8 samples at a time, which compilers make vectors of. */
NSC_FUNCTION void four_lanes_indices_float64(const double *x, size_t stride,
    double *NSC_RESTRICT values, uint32_t *NSC_RESTRICT indices) {
    four_run_indices_float64(x, stride, values, 8, indices, 8);
}

NSC_FUNCTION void four_indices_float64(const double *x, double *values, uint32_t *indices) {
    four_run_indices_float64(x, 1, values, 1, indices, 1);
}

NSC_FUNCTION void four_columns_indices_float64(const double *x, size_t count, size_t stride,
    double *values, size_t values_stride, uint32_t *indices) {
    double block[4 * 8];
    uint32_t places[4 * 8];
    const size_t whole = count - count % 8;
    for (size_t s = 0; s < whole; s += 8) {
        four_lanes_indices_float64(x + s, stride, block, places);
        for (size_t result = 0; result < 4; ++result)
            for (size_t lane = 0; lane < 8; ++lane) {
                values[result * values_stride + s + lane] = block[result * 8 + lane];
                indices[result * values_stride + s + lane] = places[result * 8 + lane];
            }
    }
    for (size_t s = whole; s < count; ++s)
        four_run_indices_float64(x + s, stride, values + s, values_stride, indices + s, 1);
}

NSC_FUNCTION void four_rows_indices_float64(const double *x, size_t count, size_t stride,
    double *values, uint32_t *indices) {
    double in[4 * 8], block[4 * 8];
    uint32_t places[4 * 8];
    const size_t whole = count - count % 8;
    for (size_t s = 0; s < whole; s += 8) {
        four_turn_float64(x + s * stride, stride, in);
        four_lanes_indices_float64(in, 8, block, places);
        for (size_t lane = 0; lane < 8; ++lane)
            for (size_t result = 0; result < 4; ++result) {
                values[(s + lane) * 4 + result] = block[result * 8 + lane];
                indices[(s + lane) * 4 + result] = places[result * 8 + lane];
            }
    }
    for (size_t s = whole; s < count; ++s)
        four_indices_float64(x + s * stride, values + s * 4, indices + s * 4);
}

#undef NSC_AT_RUN_TIME
#undef NSC_CONSTEXPR
#undef NSC_COPY
#undef NSC_FUNCTION
#undef NSC_INLINE
#undef NSC_RESTRICT
#undef NSC_COMPARATORS
#undef NSC_INPUTS
#undef NSC_OUTPUTS

#endif
