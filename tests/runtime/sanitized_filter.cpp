// Calls a filter, built with sanitizers, on images with gaps in memory of exact size. NUMBER is the type of pixels.
// PLANES, ROWS, COLUMNS, RANK: of the window. NSC_CHANNELS: the values of a pixel. With NSC_MISSING pixels are missing,
// and results are the values of rank RANK of the others.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// As nsc/windows/missing.h has it.
struct Missing {
    const uint8_t *mask, *low, *high;
    const double *share, *rest;
    const void *none;
    int32_t nan_is_missing, is_least, is_mean;
};

extern "C" int32_t nsc_filter(const void *, const int64_t *, const int64_t *, const int64_t *, void *, int32_t, const void *, void *,
                                     int64_t, int64_t, const Missing *);

namespace {

uint32_t state = 1;

uint32_t draw() { return state = state * 1664525 + 1013904223; }

// The modes reflect and nearest, the simplest of those that differ, and constant.
int64_t place(int64_t at, int64_t length, int32_t mode) {
    while (mode == 0 && (at < 0 || at >= length)) at = at < 0 ? -1 - at : 2 * length - 1 - at;
    if (mode == 1) return std::max<int64_t>(0, std::min(at, length - 1));
    return at < 0 || at >= length ? -1 : at;
}

void check(int64_t count, int64_t planes, int64_t rows, int64_t columns, const int64_t *before, int32_t mode) {
    const int64_t row = columns * NSC_CHANNELS + 3, plane = rows * row + 1, image = planes * plane + 2;
    const int64_t lengths[] = {count, planes, rows, columns}, strides[] = {image, plane, row};
    // Its last pixel is the last of its memory.
    std::vector<NUMBER> x((count - 1) * image + (planes - 1) * plane + (rows - 1) * row + columns * NSC_CHANNELS);
    for (NUMBER &value : x) value = NUMBER(draw() >> 28);
    std::vector<NUMBER> values(count * planes * rows * columns * NSC_CHANNELS);
    const NUMBER outside = 3, none = 77;
    constexpr int64_t most = PLANES * ROWS * COLUMNS;
    std::vector<uint8_t> mask(x.size()), ranks(most + 1, RANK);
    std::vector<double> share(most + 1);
    for (uint8_t &value : mask) value = NSC_MISSING && draw() >> 29 == 0;
    for (int64_t lacks = most - RANK; lacks <= most; ++lacks) ranks[lacks] = 255;
    const Missing missing = {mask.data(), ranks.data(), ranks.data(), share.data(), share.data(), &none, 0, 0, 0};
    for (int64_t part = 0; part < 3; ++part)
        if (nsc_filter(x.data(), lengths, strides, before, values.data(), mode, &outside, nullptr, part, 3, &missing)) std::exit(2);
    int64_t at = 0;
    for (int64_t i = 0; i < count; ++i)
        for (int64_t p = 0; p < planes; ++p)
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < columns * NSC_CHANNELS; ++c) {
                    std::vector<NUMBER> window;
                    for (int64_t k = 0; k < PLANES * ROWS * COLUMNS; ++k) {
                        const int64_t dp = place(p - before[0] + k / (ROWS * COLUMNS), planes, mode);
                        const int64_t dr = place(r - before[1] + k / COLUMNS % ROWS, rows, mode);
                        const int64_t dc = place(c / NSC_CHANNELS - before[2] + k % COLUMNS, columns, mode);
                        const bool is_outside = dp < 0 || dr < 0 || dc < 0;
                        const int64_t pixel = i * image + dp * plane + dr * row + dc * NSC_CHANNELS + c % NSC_CHANNELS;
                        if (is_outside ? mode != 5 : !mask[pixel]) window.push_back(is_outside ? outside : x[pixel]);
                    }
                    if (window.size() <= RANK) window.assign(RANK + 1, none);
                    std::nth_element(window.begin(), window.begin() + RANK, window.end());
                    if (values[at++] != window[RANK]) {
                        std::printf("pixel %d %d %d %d of mode %d is wrong\n", int(i), int(p), int(r), int(c), mode);
                        std::exit(1);
                    }
                }
}

}  // namespace

int main() {
    for (const int32_t mode : {0, 1, NSC_MISSING ? 5 : 3})
        for (const int64_t columns : {1, 4, 31, 64, 300})
            for (const int64_t rows : {1, 2, 9}) {
                const int64_t middle[] = {PLANES / 2, ROWS / 2, COLUMNS / 2}, none[] = {0, 0, 0}, all[] = {PLANES - 1, ROWS - 1, COLUMNS - 1};
                for (const int64_t *before : {middle, none, all}) check(2, 2, rows, columns, before, mode);
            }
    std::puts("filtered");
}
