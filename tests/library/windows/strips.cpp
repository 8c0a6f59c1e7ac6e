// Strips: their sizes, and a step.
#include "../expect.h"
#include "six.h"

#include <nsc/exact/values.h>
#include <nsc/windows/strips.h>

using namespace nsc;

template <class Element>
static void test_strips_of() {
    using Key = typename Element::Key;
    using Sizes = StripSizes<Window, Key>;
    EXPECT(Sizes::step_rows == 2 && Sizes::all_rows == 4 && Sizes::around == 4);
    EXPECT(Sizes::pitch * int64_t(sizeof(Key)) % 128 == 64);
    EXPECT(Sizes::all_rows * Sizes::pitch * int64_t(sizeof(Key)) <= 48 << 10);
    EXPECT(Sizes::most_width % lanes<Key> == 0 &&
           Sizes::most_width + Sizes::around <= Sizes::pitch);
    constexpr int64_t width = lanes<Key> + 3;
    Key rows[2][width + Sizes::around], results[width] = {};
    static Key lists[2 * Sizes::pitch];
    for (int64_t x = 0; x < width + Sizes::around; ++x)
        rows[0][x] = Key(x * 5 % 11), rows[1][x] = Key(x * 7 % 13);
    const Strip<Window, Values<Element>> strip = {{rows[0], rows[1]}, lists, {results}, {rows[0]}};
    run_step(strip, width);
    for (int64_t x = 0; x < width; ++x) {
        int less = 0, equal = 0;
        for (int k = 0; k < 6; ++k) {
            const Key value = rows[k % 2][x + k / 2 * Window::channels];
            less += value < results[x], equal += value == results[x];
        }
        EXPECT(less <= 2 && less + equal > 2);
    }
}

TEST(a_step_selects_from_each_window) {
    test_strips_of<uint8>();
    test_strips_of<int32>();
    test_strips_of<uint64>();
}
