// The C function of an exact kernel.
#include "../expect.h"
#include "sorter.h"

#include <nsc/exact/kernel.h>
#include <sys/mman.h>

using namespace nsc;

NSC_EXACT_KERNEL(Sorter, nsc::float32)

TEST(samples_are_sorted_as_by_insertion) {
    constexpr int64_t samples = 77;
    float x[samples * Sorter::wires], values[samples * Sorter::outputs];
    int32_t indices[samples * Sorter::outputs];
    Numbers numbers;
    for (float &each : x) each = float(numbers.next() % 9) - 4;
    for (const int index_bytes : {0, 4}) {
        for (const bool in_rows : {false, true}) {
            const int64_t wire = in_rows ? 1 : samples, sample = in_rows ? Sorter::wires : 1;
            EXPECT(nsc_exact_sort(x, 1, samples, 0, wire, sample, values, indices, index_bytes, 0,
                                  nullptr, 0, 1) == ok);
            for (int64_t s = 0; s < samples; ++s) {
                const Sample<float> sorted(x + s * sample, wire);
                for (int64_t o = 0; o < Sorter::outputs; ++o) {
                    const int64_t at = in_rows ? s * Sorter::outputs + o : o * samples + s;
                    EXPECT(values[at] == sorted.values[Sorter::output_wires[o]]);
                    if (index_bytes) EXPECT(indices[at] == sorted.indices[Sorter::output_wires[o]]);
                }
            }
        }
    }
}

// Memory of so many numbers; what lies behind them cannot be read.
static float *guarded(int64_t count) {
    constexpr int64_t bytes = 1 << 16;
    char *start = static_cast<char *>(
        mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(start + bytes, bytes, PROT_NONE);
    return reinterpret_cast<float *>(start + bytes) - count;
}

TEST(memory_behind_samples_is_not_read) {
    for (const int64_t samples : {64, 70}) {
        for (const int64_t sample :
             {int64_t(1), Sorter::wires}) {  // windows that overlap, and rows
            const float *x = guarded((samples - 1) * sample + Sorter::wires);
            float *values = guarded(samples * Sorter::outputs);
            EXPECT(nsc_exact_sort(x, 1, samples, 0, 1, sample, values, nullptr, 0, 0, nullptr, 0,
                                  1) == ok);
        }
    }
}
