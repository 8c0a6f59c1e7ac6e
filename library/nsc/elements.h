// Elements: types of values that are sorted exactly, and the keys that stand for them.
#pragma once

#include <nsc/numbers.h>

namespace nsc {

// Types of values. A value's bits become a key, an integer in the order of the values, and come
// back from it. `descending` is a register of 0, or of -1 for the other order. For sorting with
// indices, keys are equal where values are; `lost` then tells which values cannot come back from
// their keys, and is_shared() which keys are of several values.

template <class number>
struct Integer {
    using Key = number;
    static constexpr bool key_is_value = true;  // in ascending order
    NSC_STEP static Vec<Key> key(Vec<Key> bits, Vec<Key> descending) { return bits ^ descending; }
    NSC_STEP static Vec<Key> bits(Vec<Key> key, Vec<Key> descending) { return key ^ descending; }
    NSC_STEP static Vec<Key> key_with_index(Vec<Key> bits, Vec<Key> descending, Vec<Key> *) {
        return bits ^ descending;
    }
    NSC_STEP static Vec<Key> is_shared(Vec<Key>, Vec<Key>) { return all<Key>(0); }
    NSC_STEP static Vec<Key> is_nan(Vec<Key>) { return all<Key>(0); }
};

// Numbers of a sign, an exponent and a fraction: -0 is less than 0, and NaN, whose sign is dropped,
// is most.
template <class integer, integer infinity>
struct Float {
    using Key = integer;
    static constexpr bool key_is_value = false;
    static constexpr integer lowest = integer(uint64_t(1) << (8 * sizeof(integer) - 1)),
                             most = integer(~lowest);
    NSC_STEP static Vec<Key> ordered(Vec<Key> bits) {
        return bits ^ ((bits >> (8 * sizeof(integer) - 1)) & most);
    }
    NSC_STEP static Vec<Key> is_nan(Vec<Key> bits) { return (bits & most) > infinity; }
    NSC_STEP static Vec<Key> key(Vec<Key> bits, Vec<Key> descending) {
        const Vec<Key> size = bits & most;
        return (size > infinity ? size : ordered(bits)) ^ descending;
    }
    NSC_STEP static Vec<Key> bits(Vec<Key> key, Vec<Key> descending) {
        return ordered(key ^ descending);
    }
    NSC_STEP static Vec<Key> key_with_index(Vec<Key> bits, Vec<Key> descending, Vec<Key> *lost) {
        const Vec<Key> is_nan = (bits & most) > infinity, is_negative_zero = bits == lowest;
        *lost |= is_nan | is_negative_zero;
        const Vec<Key> key = is_nan ? all<Key>(most) : ordered(bits);
        return (is_negative_zero ? all<Key>(0) : key) ^ descending;
    }
    NSC_STEP static Vec<Key> is_shared(Vec<Key> key, Vec<Key> descending) {
        const Vec<Key> plain = key ^ descending;
        return (plain == 0) | (plain == most);
    }
};

using float64 = Float<int64_t, int64_t(0x7ff) << 52>;
using float32 = Float<int32_t, 0x7f800000>;
using bfloat16 = Float<int16_t, 0x7f80>;
using float16 = Float<int16_t, 0x7c00>;
using int64 = Integer<int64_t>;
using int32 = Integer<int32_t>;
using int16 = Integer<int16_t>;
using int8 = Integer<int8_t>;
using uint64 = Integer<uint64_t>;
using uint32 = Integer<uint32_t>;
using uint16 = Integer<uint16_t>;
using uint8 = Integer<uint8_t>;

// Changes keys so that those without a sign have their order as numbers with one, or back.
template <class Key>
NSC_STEP Vec<Key> as_signed(Vec<Key> key) {
    return Key(-1) < Key(0) ? key : key ^ Key(uint64_t(1) << (8 * sizeof(Key) - 1));
}

}  // namespace nsc
