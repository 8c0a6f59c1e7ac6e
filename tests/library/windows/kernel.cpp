// The C function of a filter.
#include "../expect.h"
#include "six.h"

#include <nsc/windows/kernel.h>

using namespace nsc;

NSC_FILTER(Window, nsc::int16)

TEST(each_pixel_is_of_the_rank_of_its_window) {
    // Images of some sizes, in parts.
    for (const int64_t columns : {int64_t(1), int64_t(7), 3 * lanes<int16_t>}) {
        for (const Mode mode : {reflect, nearest, mirror, constant, wrap}) {
            constexpr int64_t images = 2, rows = 5;
            const int64_t length = columns * Window::channels, count = images * rows * length;
            static int16_t x[images * rows * 6 * lanes<int16_t> + 14 * rows], results[sizeof x / 2];
            for (int64_t i = 0; i < count; ++i) x[i] = int16_t(i * 37 % 101 - 50), results[i] = 999;
            const int64_t lengths[] = {images, 1, rows, columns},
                          strides[] = {rows * length, rows * length, length}, before[] = {0, 1, 1};
            const int16_t outside = 17;
            for (int64_t part = 0; part < 3; ++part)
                EXPECT(nsc_filter(x, lengths, strides, before, results, mode, &outside, nullptr,
                                  part, 3, nullptr) == ok);
            for (int64_t i = 0; i < count; ++i) {
                const int64_t image = i / (rows * length), row = i / length % rows, at = i % length;
                int less = 0, equal = 0;
                for (int k = 0; k < 6; ++k) {
                    const int64_t r = index_at(row - 1 + k / 3, rows, mode);
                    const int64_t v = value_index_at(at + (k % 3 - 1) * Window::channels, length,
                                                     Window::channels, mode);
                    const int16_t value =
                        r < 0 || v < 0 ? outside : x[(image * rows + r) * length + v];
                    less += value < results[i], equal += value == results[i];
                }
                EXPECT(less <= 2 && less + equal > 2);
            }
        }
    }
}
