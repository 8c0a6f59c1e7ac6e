// Reads and writes memory in order: `count` lines of results, each the sum of `lines` lines of x, which lie side by
// side.

#include <stdint.h>

typedef float Vec __attribute__((vector_size(32), aligned(4)));

constexpr int64_t values = 16, ahead = 2048;  // float32 in a line of the cache; how far ahead memory is fetched

extern "C" __attribute__((visibility("default"))) void read_and_write(const float *x, int64_t lines, float *results, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
        Vec low = {}, high = {};
        for (int64_t i = 0; i < lines; ++i, x += values) {
            __builtin_prefetch(x + ahead);
            low += *reinterpret_cast<const Vec *>(x), high += *reinterpret_cast<const Vec *>(x + values / 2);
        }
        *reinterpret_cast<Vec *>(results + k * values) = low, *reinterpret_cast<Vec *>(results + k * values + values / 2) = high;
    }
}
