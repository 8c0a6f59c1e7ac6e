// Values with indices: equal ones keep their order.
#include "../expect.h"

#include <nsc/exact/indexed_values.h>

using namespace nsc;

template <class Element>
static void test_indexed_values_of() {
    using Form = IndexedValues<Element>;
    using Key = typename Element::Key;
    for (const Key descending : {Key(0), Key(-1)}) {
        Vec<Key> lost{}, bits = all(Key(5));
        typename Form::Item first[Form::item_registers], second[Form::item_registers];
        bits[0] = Key(7);
        Form::enter(bits, 3, all(descending), first, &lost);
        Form::enter(all(Key(5)), 2, all(descending), second, &lost);
        for (int h = 0; h < Form::item_registers; ++h) Form::order(first[h], second[h]);
        Vec<typename Form::Index> of_first, of_second;
        const Vec<Key> least = Form::leave(first, all(descending), &of_first);
        const Vec<Key> most = Form::leave(second, all(descending), &of_second);
        // The lane 0 has 7 at index 3 and 5 at index 2; the others have equal values, which keep
        // their order.
        EXPECT(least[0] == (descending ? Key(7) : Key(5)) && of_first[0] == (descending ? 3 : 2));
        EXPECT(most[0] == (descending ? Key(5) : Key(7)) && of_second[0] == (descending ? 2 : 3));
        for (int k = 1; k < lanes<Key>; ++k) {
            EXPECT(least[k] == Key(5) && most[k] == Key(5));
            EXPECT(of_first[k] == 2 && of_second[k] == 3);
        }
        for (int k = 0; k < lanes<Key>; ++k) EXPECT(lost[k] == 0);
    }
}

TEST(equal_values_are_ordered_by_their_indices) {
    test_indexed_values_of<uint8>();
    test_indexed_values_of<int8>();
    test_indexed_values_of<int16>();
    test_indexed_values_of<bfloat16>();
    test_indexed_values_of<uint32>();
    test_indexed_values_of<float32>();
    test_indexed_values_of<float64>();
    test_indexed_values_of<uint64>();
}

TEST(minus_zero_loses_its_bits) {
    using Form = IndexedValues<float32>;
    Vec<int32_t> lost{}, bits = all(int32_t(uint32_t(1) << 31));
    bits[1] = 0;
    Form::Item items[Form::item_registers];
    Form::enter(bits, 0, Vec<int32_t>{}, items, &lost);
    EXPECT(lost[0] != 0 && lost[1] == 0);  // -0 has the key of 0
}
