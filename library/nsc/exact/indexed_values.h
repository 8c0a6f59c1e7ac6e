// Values sorted with their indices: a key and its index are one item, so that ties keep their
// order.
//
// An item is an integer of twice the width; for 32-bit keys it is a double in [1, 2) where a
// processor has no minimum of 64-bit numbers.
#pragma once

#include <nsc/elements.h>
#include <nsc/exact/tiles.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "keys and indices are joined in the order of bytes that little-endian processors have"
#endif

namespace nsc {

// A form, see nsc/exact/values.h.

// Integers of `bytes` without a sign, and twice as wide with one.
template <int bytes>
struct IntegersOf;
template <>
struct IntegersOf<1> {
    using Index = uint8_t;
    using Word = int16_t;
};
template <>
struct IntegersOf<2> {
    using Index = uint16_t;
    using Word = int32_t;
};
template <>
struct IntegersOf<4> {
    using Index = uint32_t;
    using Word = int64_t;
};
template <>
struct IntegersOf<8> {
    using Index = uint64_t;
};

// A word has the key in its higher half and the index in its lower one: equal keys are ordered by
// their indices.
template <class Element, int bytes = int(sizeof(typename Element::Key))>
struct IndexedValues {
    using Key = typename Element::Key;
    using Index = typename IntegersOf<bytes>::Index;
    using Item = Vec<typename IntegersOf<bytes>::Word>;
    static constexpr int item_registers = 2;
    static constexpr bool has_indices = true;
    static constexpr int64_t most_straight = INT64_MAX;
    NSC_STEP static void enter(Vec<Key> bits, int64_t index, Order<Key> order, Item *items,
                               Vec<Key> *lost) {
        const Vec<Key> key = as_signed<Key>(Element::key_with_index(bits, order, lost)),
                       indices = all<Key>(Key(index));
        items[0] = (Item)zip_lower<Key>(indices, key),
        items[1] = (Item)zip_higher<Key>(indices, key);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Order<Key> order, Vec<Index> *indices) {
        const Vec<Key> first = (Vec<Key>)items[0], second = (Vec<Key>)items[1];
        *indices = (Vec<Index>)unzip_firsts<Key>(first, second);
        return Element::bits(as_signed<Key>(unzip_seconds<Key>(first, second)), order.descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        a = x < y ? x : y, b = x < y ? y : x;
    }
};

#if !defined(__AVX512F__)
// Without a minimum of 64-bit numbers a word is a double in [1, 2): the key in the higher bits of
// its fraction, the index below.
template <class Element>
struct IndexedValues<Element, 4> {
    using Key = typename Element::Key;
    using Index = uint32_t;
    using Item = Vec<double>;
    using Bits = Vec<uint64_t>;
    static constexpr int item_registers = 2;
    static constexpr bool has_indices = true;
    static constexpr int64_t most_straight = INT64_MAX;
    static constexpr int fraction = 52, index_bits = fraction - 32;
    static_assert(index_bits >= 16, "wires have numbers of 16 bits");
    NSC_STEP static void enter(Vec<Key> bits, int64_t index, Order<Key> order, Item *items,
                               Vec<Key> *lost) {
        const Vec<Key> key =
            as_signed<Key>(Element::key_with_index(bits, order, lost)) ^ Key(uint32_t(1) << 31);
        const Bits rest = all<uint64_t>(uint64_t(0x3ff) << fraction | uint64_t(index));
        items[0] = (Item)((Bits)zip_lower<Key>(Vec<Key>{}, key) >> (64 - fraction) | rest);
        items[1] = (Item)((Bits)zip_higher<Key>(Vec<Key>{}, key) >> (64 - fraction) | rest);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Order<Key> order, Vec<Index> *indices) {
        const Bits first = (Bits)items[0], second = (Bits)items[1];
        *indices = unzip_firsts<Index>((Vec<Index>)first, (Vec<Index>)second) &
                   Index((1 << index_bits) - 1);
        const Vec<Key> key = unzip_seconds<Key>((Vec<Key>)(first << (64 - fraction)),
                                                (Vec<Key>)(second << (64 - fraction)));
        return Element::bits(as_signed<Key>(key ^ Key(uint32_t(1) << 31)), order.descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
#if defined(__AVX__) && !defined(__clang__)
        a = __builtin_ia32_minpd256(x, y),
        b = __builtin_ia32_maxpd256(x, y);  // GCC finds them itself, but slowly
#else
        a = x < y ? x : y, b = x > y ? x : y;
#endif
    }
};
#endif

// Key and index in a register each.
template <class Element>
struct IndexedValues<Element, 8> {
    using Key = typename Element::Key;
    using Index = uint64_t;
    struct Item {
        Vec<Key> key;
        Vec<Index> index;
    };
    static constexpr int item_registers = 1;
    static constexpr bool has_indices = true;
    // Beyond, GCC's code is slower, and takes it long.
    static constexpr int64_t most_straight = 100;
    NSC_STEP static void enter(Vec<Key> bits, int64_t index, Order<Key> order, Item *items,
                               Vec<Key> *lost) {
        items[0] = {Element::key_with_index(bits, order, lost), all<Index>(Index(index))};
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Order<Key> order, Vec<Index> *indices) {
        *indices = items[0].index;
        return Element::bits(items[0].key, order.descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        const Vec<int64_t> swap =
            (y.key < x.key) | ((y.key == x.key) & (Vec<int64_t>)(y.index < x.index));
        a = {swap ? y.key : x.key, swap ? y.index : x.index};
        b = {swap ? x.key : y.key, swap ? x.index : y.index};
    }
};

}  // namespace nsc
