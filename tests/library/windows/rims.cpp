// Rims: the edges of an image, and keys of rows.
#include "../expect.h"
#include "six.h"

#include <nsc/elements.h>
#include <nsc/windows/rims.h>

using namespace nsc;

TEST(a_rim_has_both_edges_and_what_stands_around_them) {
    using Key = int32_t;
    using Element = float32;
    constexpr int64_t around = 4, before = 2, length = lanes<Key> + around + 6;
    const Rim<Window, Key> rim(length, before, nearest);
    EXPECT(!rim.is_all(length) && rim.is_all(lanes<Key> + around - 1));
    EXPECT(rim.edges[0].in_row == 0 && rim.edges[0].in_rim == 0 && rim.edges[0].count == before);
    EXPECT(rim.edges[1].in_row == length - 2 && rim.edges[1].count == 2);
    EXPECT(rim.edges[1].in_rim == before + around && rim.count == 2 * (2 + around));
    EXPECT(rim.width() >= lanes<Key> && rim.width() >= rim.count - around);
    const int64_t left[] = {0, 1, 0, 1, 2, 3}, right[] = {-4, -3, -2, -1, -2, -1};
    for (int k = 0; k < 6; ++k) {
        EXPECT(rim.values[k] == left[k]);
        EXPECT(rim.values[6 + k] == length + right[k]);
    }
    Key row[length], keys[length + 2 * lanes<Key>];
    for (int64_t x = 0; x < length; ++x) row[x] = Key(0x80000000 | x);  // minus something
    enter_row<Element>(static_cast<const Key *>(row), Key(0), length, keys);
    for (int64_t x = 0; x < length; ++x)
        EXPECT(keys[x] == Element::key(all(row[x]), Vec<Key>{})[0]);
    enter_rim<Element>(rim, static_cast<const Key *>(row), Key(0), keys);
    for (int64_t x = 0; x < rim.count; ++x)
        EXPECT(keys[x] == Element::key(all(row[rim.values[x]]), Vec<Key>{})[0]);
    enter_row<Element>(static_cast<const Key *>(nullptr), Key(3), length, keys);
    EXPECT(keys[0] == 3 && keys[length - 1] == 3);
}
