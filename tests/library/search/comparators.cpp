// Comparators: lists that are copied, grown and shortened.
#include "../expect.h"

#include <nsc/search/comparators.h>

using namespace nsc::search;

TEST(a_comparator_has_its_lower_wire_first) {
    EXPECT(joined(3, 1) == Comparator{1, 3});
    EXPECT(joined(1, 3) == Comparator{1, 3});
}

TEST(a_list_keeps_its_order) {
    Comparators list;
    list.add({0, 1}), list.add({4, 5});
    list.insert(1, {2, 3});
    list.insert(3, {6, 7});
    const Comparators copy = list;
    list.remove(0);
    EXPECT(copy.count == 4);
    for (int64_t k = 0; k < 4; ++k)
        EXPECT(copy.at[k] == Comparator{uint8_t(2 * k), uint8_t(2 * k + 1)});
    EXPECT(list.count == 3);
    EXPECT(list.at[0] == copy.at[1]);
    EXPECT(list.at[2] == copy.at[3]);
}
