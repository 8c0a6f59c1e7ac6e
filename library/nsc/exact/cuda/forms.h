// Forms of exact kernels in CUDA: they sort values alone, or values with their indices.
#pragma once

#include <nsc/elements.h>

namespace nsc::cuda {

// A form has the items that are sorted. enter() makes an item of a value's bits and its index.
// leave() turns an item to the bits again, and index() to the index. order() is a comparator.

// Items of less than 32 bits would be widened for each comparison.
template <class Key, bool is_narrow = (sizeof(Key) < 4)>
struct WideOf {
    using type = Key;
};
template <class Key>
struct WideOf<Key, true> {
    using type = int32_t;
};

template <class Item>
NSC_STEP void order_items(Item &a, Item &b) {
    const bool is_wrong = b < a;
    const Item first = is_wrong ? b : a, second = is_wrong ? a : b;
    a = first, b = second;
}

// Values alone.
template <class Element>
struct Values {
    using Key = typename Element::Key;
    using Item = typename WideOf<Key>::type;
    static constexpr bool has_indices = false;
    NSC_STEP static Item enter(Key bits, int32_t, Key descending) {
        return Element::key(bits, descending);
    }
    NSC_STEP static Key leave(Item item, Key descending) {
        return Element::bits(Key(item), descending);
    }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};

// Integers of `bytes` with a sign, and the integers that hold one of these and an index.
template <int bytes>
struct IntegersOf;
template <>
struct IntegersOf<1> {
    using Signed = int8_t;
    using Word = int32_t;
};
template <>
struct IntegersOf<2> {
    using Signed = int16_t;
    using Word = int32_t;
};
template <>
struct IntegersOf<4> {
    using Signed = int32_t;
    using Word = int64_t;
};

// A word has the key in its higher half and the index in its lower one: equal keys are ordered by
// their indices.
template <class Element, int bytes = int(sizeof(typename Element::Key))>
struct IndexedValues {
    using Key = typename Element::Key;
    using Signed = typename IntegersOf<bytes>::Signed;
    using Item = typename IntegersOf<bytes>::Word;
    static constexpr bool has_indices = true;
    static constexpr Item count = Item(1) << (4 * sizeof(Item));
    NSC_STEP static Item enter(Key bits, int32_t index, Key descending) {
        Key lost = 0;
        return Item(Signed(as_signed<Key>(Element::key_with_index(bits, descending, &lost)))) *
                   count +
               index;
    }
    NSC_STEP static int32_t index(Item item) { return int32_t(item & (count - 1)); }
    NSC_STEP static Key key(Item item) { return as_signed<Key>(Key(item >> (4 * sizeof(Item)))); }
    NSC_STEP static Key leave(Item item, Key descending) {
        return Element::bits(key(item), descending);
    }
    NSC_STEP static bool is_shared(Item item, Key descending) {
        return Element::is_shared(key(item), descending);
    }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};

template <class Element>
struct IndexedValues<Element, 8> {
    using Key = typename Element::Key;
    struct alignas(16) Item {
        __device__ bool operator<(const Item &other) const {
            return (key < other.key) | ((key == other.key) & (index < other.index));
        }
        Key key;
        int32_t index, rest;  // 0: items are copied whole, and no byte of them is without a value
    };
    static constexpr bool has_indices = true;
    NSC_STEP static Item enter(Key bits, int32_t index, Key descending) {
        Key lost = 0;
        return {Element::key_with_index(bits, descending, &lost), index, 0};
    }
    NSC_STEP static int32_t index(Item item) { return item.index; }
    NSC_STEP static Key leave(Item item, Key descending) {
        return Element::bits(item.key, descending);
    }
    NSC_STEP static bool is_shared(Item item, Key descending) {
        return Element::is_shared(item.key, descending);
    }
    NSC_STEP static void order(Item &a, Item &b) { order_items(a, b); }
};

}  // namespace nsc::cuda
