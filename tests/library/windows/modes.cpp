// Modes: what stands outside of an image.
#include "../expect.h"

#include <nsc/windows/modes.h>

using namespace nsc;

TEST(each_mode_continues_a_row_as_scipy_does) {
    // Around the four pixels 0 1 2 3, from position -5 on; the constant is -1.
    const struct {
        Mode mode;
        int64_t indices[14];
    } rows[] = {
        {reflect, {3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0}},
        {mirror, {1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2}},
        {nearest, {0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3}},
        {wrap, {3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0}},
        {constant, {-1, -1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1, -1}},
    };
    for (const auto &row : rows) {
        for (int64_t k = 0; k < 14; ++k) {
            EXPECT(index_at(k - 5, 4, row.mode) == row.indices[k]);
            for (int64_t channel = 0; channel < 3; ++channel)
                EXPECT(value_index_at(3 * (k - 5) + channel, 12, 3, row.mode) ==
                       (row.indices[k] < 0 ? -1 : 3 * row.indices[k] + channel));
        }
        EXPECT(index_at(7, 1, row.mode) == (row.mode == constant ? -1 : 0));
    }
    EXPECT(modulo(-1, 5) == 4 && modulo(5, 5) == 0);
}
