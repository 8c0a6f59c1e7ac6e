// The C function of an exact kernel.
#include "../expect.h"
#include "sorter.h"

#include <nsc/exact/kernel.h>

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
