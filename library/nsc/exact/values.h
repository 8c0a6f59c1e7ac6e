// Values sorted alone: a register of keys for each wire.
#pragma once

#include <nsc/elements.h>
#include <nsc/registers.h>

namespace nsc {

// A form says what is sorted: items, of which a register of values makes `item_registers`. enter()
// makes the items of a wire, leave() turns them to bits of values again, and to indices; order() is
// a comparator. Networks of more than `most_straight` comparators run from a table.

template <class ElementOf>
struct Values {
    using Element = ElementOf;
    using Key = typename Element::Key;
    using Index = Key;
    using Item = Vec<Key>;
    static constexpr int item_registers = 1;
    static constexpr bool has_indices = false;
    static constexpr int64_t most_straight = INT64_MAX;
    NSC_STEP static void enter(Vec<Key> bits, int64_t, Order<Key> order, Item *items, Vec<Key> *) {
        items[0] = Element::key(bits, order);
    }
    NSC_STEP static Vec<Key> leave(const Item *items, Order<Key> order, Vec<Index> *) {
        return Element::bits(items[0], order.descending);
    }
    NSC_STEP static void order(Item &a, Item &b) {
        const Item x = a, y = b;
        a = x < y ? x : y, b = x < y ? y : x;
    }
};

}  // namespace nsc
