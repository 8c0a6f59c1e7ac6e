/* four.cuh: exact sorting of 4 values, for CUDA C++, and for C++11 and later.
 *
 * Made by: nsc emit cuda best --n 4 --name four
 * nsc:     0
 * Network: 4 wires, 5 comparators, 3 layers, sha256 48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4
 * Proof:   sorts every input, by exhaustion: all 2^4 0-1 inputs come out sorted
 * Licence: MIT, Copyright (c) 2026 The nsc authors
 * SPDX-License-Identifier: MIT
 *
 * A thread, of a device or the host, calls these with arrays of its own:
 *
 *   void four_sort(T (&x)[4])
 *   void four_sort_pairs(K (&keys)[4], V (&values)[4])
 *
 * Results: all values, the smallest first.
 * Types T and K have `<`. Equal values or keys may come in any order. float and double are compared as whole numbers:
 * -0 comes before 0, and NaN behind all numbers, without its sign. Other types with NaN come out in some order, none
 * twice. No branch is written, and arrays that are indexed by constants alone, as in unrolled loops, stay in registers.
 */

#ifndef NSC_four_CUH
#define NSC_four_CUH

#ifndef __CUDACC_RTC__
#include <string.h>
#endif
#ifdef __CUDACC__
#define NSC_FUNCTION __host__ __device__ __forceinline__
#else
#define NSC_FUNCTION inline
#endif

/* What is compared in the place of a value. */
template <class T>
struct four_keys {
    typedef T Key;
    static NSC_FUNCTION const T &key(const T &value) { return value; }
    static NSC_FUNCTION const T &value(const T &key) { return key; }
};

template <class Float, class Bits, class Unsigned, Bits infinity>
struct four_float_keys {
    typedef Bits Key;
    static constexpr Bits size_bits = Bits(Unsigned(-1) >> 1);
    /* Of a negative number all bits but the sign are turned. */
    static NSC_FUNCTION Bits turned(Bits bits) { return bits ^ (bits >> (8 * sizeof bits - 1) & size_bits); }
    static NSC_FUNCTION Bits key(Float value) {
        Bits bits;
        memcpy(&bits, &value, sizeof bits);
        const Bits size = bits & size_bits;
        return turned(size > infinity ? size : bits);
    }
    static NSC_FUNCTION Float value(Bits key) {
        const Bits bits = turned(key);
        Float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
};
template <>
struct four_keys<float> : four_float_keys<float, int, unsigned, 0x7f800000> {};
template <>
struct four_keys<double>
    : four_float_keys<double, long long, unsigned long long, 0x7ff0000000000000> {};

template <class K, class V>
NSC_FUNCTION void four_sort_pairs(K (&keys)[4], V (&values)[4]) {
    typedef four_keys<K> Keys;
    typename Keys::Key k[4];
    V v[4];
    const auto enter = [&](int wire) { k[wire] = Keys::key(keys[wire]), v[wire] = values[wire]; };
    const auto order = [&](int lo, int hi) {
        const typename Keys::Key key_lo = k[lo], key_hi = k[hi];
        const V value_lo = v[lo], value_hi = v[hi];
        const bool is_less = key_hi < key_lo;
        k[lo] = is_less ? key_hi : key_lo, v[lo] = is_less ? value_hi : value_lo;
        k[hi] = is_less ? key_lo : key_hi, v[hi] = is_less ? value_lo : value_hi;
    };
    const auto leave = [&](int r, int wire) { keys[r] = Keys::value(k[wire]), values[r] = v[wire]; };
    enter(0); enter(1); enter(2); enter(3); order(0, 2); order(1, 3); order(0, 1); order(2, 3); order(1, 2);
    leave(0, 0); leave(1, 1); leave(2, 2); leave(3, 3);
}

/* The payload of values without one. */
struct four_nothing {};

template <class T>
NSC_FUNCTION void four_sort(T (&x)[4]) {
    four_nothing nothing[4] = {};
    four_sort_pairs(x, nothing);
}

#undef NSC_FUNCTION

#endif
