// Elements: types of values that are sorted exactly, and the keys that stand for them.
#pragma once

#include <nsc/numbers.h>

namespace nsc {

// An order of values. Where `descending` is a register of -1, not of 0, larger values come first,
// and NaN too unless `nan_last`. `nan` is a register of -1 where NaN comes first.
template <class Key>
struct Order {
    Vec<Key> descending, nan;
    bool nan_last;
    NSC_FUNCTION Order(Vec<Key> descending, bool nan_last = false)
        : descending(descending), nan(nan_last ? all<Key>(0) : descending), nan_last(nan_last) {}
};

// Types of values. A value's bits become a key, an integer in the order of the values, and come
// back from it. For sorting with indices, keys are equal where values are; `lost` then tells which
// values cannot come back from their keys, and is_shared() which keys are of several values.

template <class number>
struct Integer {
    using Key = number;
    static constexpr bool key_is_value = true;  // in ascending order
    NSC_STEP static Vec<Key> key(Vec<Key> bits, Order<Key> order) {
        return bits ^ order.descending;
    }
    NSC_STEP static Vec<Key> bits(Vec<Key> key, Vec<Key> descending) { return key ^ descending; }
    NSC_STEP static Vec<Key> key_with_index(Vec<Key> bits, Order<Key> order, Vec<Key> *) {
        return bits ^ order.descending;
    }
    NSC_STEP static Vec<Key> is_shared(Vec<Key>, Order<Key>) { return all<Key>(0); }
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
    NSC_STEP static Vec<Key> key(Vec<Key> bits, Order<Key> order) {
        const Vec<Key> size = bits & most;
        const Vec<Key> key = (size > infinity ? size : ordered(bits)) ^ order.descending;
        // A branch that is the same for all values takes less time than one more operation.
        if (order.nan_last) return size > infinity ? size : key;
        return key;
    }
    NSC_STEP static Vec<Key> bits(Vec<Key> key, Vec<Key> descending) {
        return ordered(key ^ descending);
    }
    NSC_STEP static Vec<Key> key_with_index(Vec<Key> bits, Order<Key> order, Vec<Key> *lost) {
        const Vec<Key> is_nan = (bits & most) > infinity, is_negative_zero = bits == lowest;
        *lost |= is_nan | is_negative_zero;
        const Vec<Key> key = is_negative_zero ? all<Key>(0) : ordered(bits);
        return is_nan ? most ^ order.nan : key ^ order.descending;
    }
    NSC_STEP static Vec<Key> is_shared(Vec<Key> key, Order<Key> order) {
        return (key == order.descending) | (key == (most ^ order.nan));
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
